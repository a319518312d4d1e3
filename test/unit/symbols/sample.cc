/* SPDX-License-Identifier: MIT */
/*
 * sample.cc - the C++ half of the sample: names that have to be demangled.
 */
#include "sample.h"

namespace shapes
{

struct Shape {
	int value;

	Shape(int first, const char *name);
	int area(int width, const Shape &other) const;
};

__attribute__((noinline)) Shape::Shape(int first, const char *name) : value(first)
{
	sample_lines[SAMPLE_CONSTRUCTOR] = __LINE__ + 1;
	sample_note();
	value += *name;
}

__attribute__((noinline)) int Shape::area(int width, const Shape &other) const
{
	sample_lines[SAMPLE_METHOD] = __LINE__ + 1;
	sample_note();
	return width + value + other.value;
}

namespace
{

template <typename T> struct Box {
	T content;

	__attribute__((noinline)) void fill(T with)
	{
		sample_lines[SAMPLE_BOX] = __LINE__ + 1;
		sample_note();
		content = with;
	}
};

} // namespace

template <typename T> inline __attribute__((always_inline)) T twice(T value)
{
	sample_lines[SAMPLE_TWICE] = __LINE__ + 1;
	sample_note();
	return value + value;
}

} // namespace shapes

int sample_constructor(int value)
{
	shapes::Shape shape(value, "x");

	return shape.value;
}

int sample_method(int value)
{
	shapes::Shape shape(value, "x");

	return shape.area(value, shape);
}

int sample_box(int value)
{
	shapes::Box<int> box;

	box.fill(value);
	return box.content;
}

int sample_twice(int value)
{
	sample_lines[SAMPLE_USER] = __LINE__ + 1;
	return (int)shapes::twice(static_cast<long>(value));
}
