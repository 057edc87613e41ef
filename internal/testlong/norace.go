//go:build !race

package testlong

const raceDetector = false
