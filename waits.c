#include <stdlib.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 7; i++) { void *p = malloc(11); __asm__ volatile("" : : "r"(p)); } if (write(1, "x", 1) == 1) pause(); return 3; }
