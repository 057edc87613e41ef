// Branchy parsing: a table of comma-separated values with quotes, numbers and dates.
#include "programs.h"

enum { ROWS = 6000 };
static char text[ROWS * 80];

FUNCTION long generate(void)
{
	long at = 0;
	for (int i = 0; i < ROWS; i++)
		at += sprintf(text + at, any() % 3 ? "%d,name%d,%d-%02d-%02d,%d.%02d\n" : "%d,\"na\"\"me, %d\",%d-%02d-%02d,-%d.%d\n", i, (int)(any() % 1000), 1990 + (int)(any() % 30),
			1 + (int)(any() % 12), 1 + (int)(any() % 28), (int)(any() % 10000), (int)(any() % 100));
	return at;
}

FUNCTION const char *field(const char *p, char *to)
{
	if (*p == '"') {
		for (p++;; p++) {
			if (*p == '"' && *++p != '"')
				break;
			*to++ = *p;
		}
	} else {
		while (*p != ',' && *p != '\n')
			*to++ = *p++;
	}
	*to = 0;
	return p + 1;
}

FUNCTION double decimal(const char *s)
{
	int negative = *s == '-';
	double v = 0, scale = 1;
	for (s += negative; *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (*s - '0');
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++)
			v += (*s - '0') * (scale *= 0.1);
	return negative ? -v : v;
}

FUNCTION int day(const char *s)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int part[3] = {0}, k = 0;
	for (; *s; s++)
		if (*s == '-')
			k++;
		else
			part[k] = part[k] * 10 + *s - '0';
	return part[0] * 365 + part[0] / 4 - part[0] / 100 + before[part[1] - 1] + part[2];
}

int main(int argc, char **argv)
{
	long size = generate();
	double sum = 0;
	char id[64], name[64], date[64], value[64];
	for (int r = rounds(argc, argv); r > 0; r--)
		for (const char *p = text; p < text + size;) {
			p = field(field(field(field(p, id), name), date), value);
			sum += decimal(value) + day(date) + strlen(name) + atoi(id);
		}
	printf("%g\n", sum);
}
