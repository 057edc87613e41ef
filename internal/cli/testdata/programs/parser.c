// Branchy parsing: JSON is written, divided into tokens and its numbers are summed.
#include "programs.h"

enum { SIZE = 1 << 18 };
static char text[SIZE + 256];
static struct { char kind; int start, end; } token[SIZE];

FUNCTION int generate(void)
{
	int at = sprintf(text, "[");
	while (at < SIZE)
		switch (any() % 4) {
		case 0: at += sprintf(text + at, "{\"id\": %d, \"name\": \"n%d\"},\n", (int)(any() % 1000), (int)(any() % 100000)); break;
		case 1: at += sprintf(text + at, "[%d.%d, -%d, true], ", (int)(any() % 99), (int)(any() % 10000), (int)(any() % 7)); break;
		case 2: at += sprintf(text + at, "null, \"a \\\"word\\\" %d\", ", (int)(any() % 10)); break;
		default: at += sprintf(text + at, "%d,\n  ", (int)(any() % 1000000)); break;
		}
	return at;
}

FUNCTION int scan(int size)
{
	int n = 0;
	for (int i = 0; i < size;) {
		char c = text[i];
		if (c == ' ' || c == '\n' || c == ',' || c == ':') {
			i++;
			continue;
		}
		token[n].start = i;
		if (c == '"') {
			for (i++; text[i] != '"'; i++)
				if (text[i] == '\\')
					i++;
			i++;
			c = 's';
		} else if (c == '-' || (c >= '0' && c <= '9')) {
			for (i++; (text[i] >= '0' && text[i] <= '9') || text[i] == '.'; i++)
				;
			c = 'n';
		} else if (c >= 'a' && c <= 'z') {
			while (text[i] >= 'a' && text[i] <= 'z')
				i++;
			c = 'w';
		} else {
			i++;
		}
		token[n].kind = c;
		token[n++].end = i;
	}
	return n;
}

FUNCTION double number(const char *p, const char *end)
{
	double v = 0, unit = 0, sign = 1;
	for (; p < end; p++)
		if (*p == '-')
			sign = -1;
		else if (*p == '.')
			unit = 1;
		else
			v = v * 10 + (*p - '0'), unit *= 10;
	return unit > 1 ? sign * v / unit : sign * v;
}

FUNCTION int depth(int n)
{
	int now = 0, most = 0;
	for (int i = 0; i < n; i++) {
		if (token[i].kind == '{' || token[i].kind == '[')
			now++;
		else if (token[i].kind == '}' || token[i].kind == ']')
			now--;
		most = now > most ? now : most;
	}
	return most;
}

int main(int argc, char **argv)
{
	int size = generate();
	double sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		int n = scan(size);
		for (int i = 0; i < n; i++)
			if (token[i].kind == 'n')
				sum += number(text + token[i].start, text + token[i].end);
		sum += depth(n);
	}
	printf("%g\n", sum);
}
