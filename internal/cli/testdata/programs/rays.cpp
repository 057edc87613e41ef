// Rays through a scene: spheres by a tree of boxes, triangles one by one, light, and
// the picture with a curve for the screen.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>
extern "C" {
#include "programs.h"
}

struct Vector {
	double x, y, z;
	Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
	Vector operator-(const Vector &o) const { return {x - o.x, y - o.y, z - o.z}; }
	Vector operator*(double k) const { return {x * k, y * k, z * k}; }
	double dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
	Vector cross(const Vector &o) const { return {y * o.z - z * o.y, z * o.x - x * o.z, x * o.y - y * o.x}; }
	Vector unit() const { return *this * (1 / std::sqrt(dot(*this))); }
	double operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
};

struct Ray { Vector from, to, inverse; };
struct Sphere { Vector centre; double radius; bool mirror; };
struct Triangle { Vector a, b, c; };
struct Box { Vector low, high; int left, right, first, count; };
struct Hit { double far = 1e30; Vector normal; bool mirror = false; };

static std::vector<Sphere> spheres;
static std::vector<Triangle> triangles;
static std::vector<Box> boxes;

FUNCTION int build(int first, int count)
{
	Box box{{1e30, 1e30, 1e30}, {-1e30, -1e30, -1e30}, -1, -1, first, count};
	for (int i = first; i < first + count; i++) {
		const Sphere &s = spheres[i];
		Vector r{s.radius, s.radius, s.radius}, low = s.centre - r, high = s.centre + r;
		box.low = {std::min(box.low.x, low.x), std::min(box.low.y, low.y), std::min(box.low.z, low.z)};
		box.high = {std::max(box.high.x, high.x), std::max(box.high.y, high.y), std::max(box.high.z, high.z)};
	}
	int at = boxes.size();
	boxes.push_back(box);
	if (count > 3) {
		Vector d = box.high - box.low;
		int axis = d.x > d.y ? (d.x > d.z ? 0 : 2) : (d.y > d.z ? 1 : 2);
		std::sort(spheres.begin() + first, spheres.begin() + first + count,
			[axis](const Sphere &a, const Sphere &b) { return a.centre[axis] < b.centre[axis]; });
		int left = build(first, count / 2), right = build(first + count / 2, count - count / 2);
		boxes[at].left = left, boxes[at].right = right;
	}
	return at;
}

FUNCTION bool enters(const Box &b, const Ray &r, double far)
{
	double near = 0;
	for (int i = 0; i < 3; i++) {
		double t = (b.low[i] - r.from[i]) * r.inverse[i], u = (b.high[i] - r.from[i]) * r.inverse[i];
		near = std::max(near, std::min(t, u));
		far = std::min(far, std::max(t, u));
	}
	return near <= far;
}

FUNCTION bool round_(const Sphere &s, const Ray &r, Hit &hit)
{
	Vector d = r.from - s.centre;
	double b = d.dot(r.to), under = b * b - d.dot(d) + s.radius * s.radius;
	if (under < 0)
		return false;
	double t = -b - std::sqrt(under);
	if (t < 1e-6 || t >= hit.far)
		return false;
	hit.far = t, hit.mirror = s.mirror;
	hit.normal = (r.from + r.to * t - s.centre) * (1 / s.radius);
	return true;
}

FUNCTION bool flat(const Ray &r, Hit &hit)
{
	bool found = false;
	for (const Triangle &t : triangles) {
		Vector e = t.b - t.a, f = t.c - t.a, p = r.to.cross(f), s = r.from - t.a;
		double inverse = 1 / e.dot(p), u = s.dot(p) * inverse;
		if (!(u >= 0 && u <= 1))
			continue;
		Vector q = s.cross(e);
		double v = r.to.dot(q) * inverse, far = f.dot(q) * inverse;
		if (v >= 0 && u + v <= 1 && far > 1e-6 && far < hit.far)
			hit.far = far, hit.mirror = false, hit.normal = e.cross(f).unit(), found = true;
	}
	return found;
}

FUNCTION void visit(int at, const Ray &r, Hit &hit)
{
	int stack[64], n = 0;
	stack[n++] = at;
	while (n > 0) {
		const Box &b = boxes[stack[--n]];
		if (!enters(b, r, hit.far))
			continue;
		if (b.left >= 0)
			stack[n++] = b.left, stack[n++] = b.right;
		else
			for (int k = b.first; k < b.first + b.count; k++)
				round_(spheres[k], r, hit);
	}
}

static Ray ray(const Vector &from, const Vector &to)
{
	return {from, to, {1 / to.x, 1 / to.y, 1 / to.z}};
}

FUNCTION double light(const Ray &r, int depth)
{
	Hit hit;
	visit(0, r, hit);
	flat(r, hit);
	if (hit.far == 1e30)
		return 0.2 + 0.3 * (r.to.y + 1);
	Vector at = r.from + r.to * hit.far, n = hit.normal.dot(r.to) > 0 ? hit.normal * -1 : hit.normal;
	if (hit.mirror && depth > 0)
		return 0.9 * light(ray(at + n * 1e-4, (r.to - n * (2 * n.dot(r.to))).unit()), depth - 1);
	const Vector sun = Vector{0.5, 0.8, -0.3}.unit();
	double bright = std::max(0.0, n.dot(sun));
	if (bright > 0) {
		Hit shadow;
		visit(0, ray(at + n * 1e-4, sun), shadow);
		if (shadow.far < 1e30)
			bright = 0;
	}
	return 0.1 + 0.9 * bright;
}

FUNCTION long shown(const std::vector<double> &picture)
{
	long sum = 0;
	for (double v : picture)
		sum += (long)(255.99 * std::pow(std::min(1.0, v), 1 / 2.2));
	return sum;
}

int main(int argc, char **argv)
{
	const int side = 48;
	auto part = [](double most) { return (any() >> 40) * most / (1 << 24); };
	for (int i = 0; i < 400; i++)
		spheres.push_back({{part(20) - 10, part(8) - 4, part(20) + 4}, 0.2 + part(0.5), i % 3 == 0});
	for (int i = 0; i < 16; i++) {
		Vector a{part(20) - 10, part(6) - 5, part(20) + 4};
		triangles.push_back({a, a + Vector{part(3), part(1), part(2)}, a + Vector{part(2), part(1), -part(3)}});
	}
	build(0, spheres.size());
	std::vector<double> picture(side * side);
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		Vector eye{0.01 * (r % 50), 1, -6};
		for (int y = 0; y < side; y++)
			for (int x = 0; x < side; x++)
				picture[y * side + x] = light(ray(eye, Vector{(x - side / 2 + 0.5) / side, (side / 2 - y - 0.5) / side, 1}.unit()), 3);
		sum += shown(picture);
	}
	printf("%ld\n", sum);
}
