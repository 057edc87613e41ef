// Loops of TestNeoverse: the reason why each is slow differs.
#include <stddef.h>
#include <stdint.h>
double sum(const double*a,size_t n){double s=0;for(size_t i=0;i<n;i++)s+=a[i];return s;}
void axpy(float*y,const float*x,float a,size_t n){for(size_t i=0;i<n;i++)y[i]+=a*x[i];}
uint64_t hash(const uint8_t*p,size_t n){uint64_t h=1469598103934665603u;for(size_t i=0;i<n;i++)h=(h^p[i])*1099511628211u;return h;}
uint64_t divs(const uint64_t*a,size_t n){uint64_t s=0;for(size_t i=0;i<n;i++)s+=a[i]/(a[i]%7+3);return s;}
int maximum(const int*a,size_t n){int m=a[0];for(size_t i=0;i<n;i++)m=a[i]>m?a[i]:m;return m;}
struct L{struct L*n;long v;};
long list(struct L*l){long s=0;for(;l;l=l->n)s+=l->v;return s;}
void copy(uint64_t*a,const uint64_t*b,size_t n){for(size_t i=0;i<n;i++){a[i]=b[i];__asm__("":::"memory");}}
double dot(const double*a,const double*b,size_t n){double s=0;for(size_t i=0;i<n;i++)s+=a[i]*b[i];return s;}
unsigned checksum(const unsigned*a,size_t n){unsigned c=0;for(size_t i=0;i<n;i++){c=(c<<5)+(c>>3);c^=a[i];}return c;}
double newton(double x,int n){for(int i=0;i<n;i++)x=0.5*(x+2.0/x);return x;}
int count(const int*a,size_t n,int k){int c=0;for(size_t i=0;i<n;i++){if(a[i]==k)c++;}return c;}
void scale(int*a,size_t n,int k){for(size_t i=0;i<n;i++)a[i]=a[i]*k+(a[i]>>2);}
uint64_t zeros(const uint64_t*a,size_t n){uint64_t s=0;for(size_t i=0;i<n;i++)s+=__builtin_clzl(a[i]|1);return s;}
float polynomial(const float*a,size_t n){float s=0;for(size_t i=0;i<n;i++){float x=a[i];s+=((x*1.5f+2)*x+3)*x+4;}return s;}
