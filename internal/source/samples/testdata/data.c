/* Variables of which the file has the value, and one that is zero at the start. */
long filled[64] = {1, 2, 3};
long zeroed[1 << 16];
const int constant[64] = {4, 5, 6};

int main(int argc, char **argv)
{
	return filled[argc] + zeroed[argc] + constant[argc] == 42;
}
