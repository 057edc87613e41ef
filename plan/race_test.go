//go:build race

package plan_test

// raceDetector says that the tests run several times slower than usual.
const raceDetector = true
