package agent

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"

	"github.com/cyclestack/cyclestack/internal/fault"
)

// A webFile is the file for TLS and users, by the convention of Prometheus's exporters. See
// docs/web-configuration.md of github.com/prometheus/exporter-toolkit.
type webFile struct {
	TLS  webTLS `yaml:"tls_server_config"`
	HTTP struct {
		HTTP2  *bool             `yaml:"http2"`
		Header map[string]string `yaml:"headers"`
	} `yaml:"http_server_config"`
	Users map[string]string `yaml:"basic_auth_users"`
}

// A webTLS is the part of the file about TLS.
type webTLS struct {
	Cert          string   `yaml:"cert_file"`
	Key           string   `yaml:"key_file"`
	ClientAuth    string   `yaml:"client_auth_type"`
	ClientCA      string   `yaml:"client_ca_file"`
	ClientNames   []string `yaml:"client_allowed_sans"`
	Ciphers       []string `yaml:"cipher_suites"`
	Curves        []string `yaml:"curve_preferences"`
	Min           string   `yaml:"min_version"`
	Max           string   `yaml:"max_version"`
	PreferCiphers bool     `yaml:"prefer_server_cipher_suites"` // without effect since Go 1.17
}

// A webConfig is such a file, as it was when it was last read.
type webConfig struct {
	name string
	mu   sync.Mutex
	file webFile
	tls  *tls.Config                // nil for plain HTTP
	seen map[[sha256.Size]byte]bool // users and passwords that were right
}

// readWebConfig reads the file; without a name there is neither TLS nor users.
func readWebConfig(name string) (*webConfig, error) {
	c := &webConfig{name: name}
	return c, c.reload()
}

// reload reads the file and the certificates anew. After an error the old ones hold.
func (c *webConfig) reload() error {
	if c.name == "" {
		return nil
	}
	text, err := readBounded(c.name)
	if err != nil {
		return fault.As(fault.Input, err)
	}
	var f webFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return fault.Inputf("%s: %s", c.name, strings.Join(strings.Fields(err.Error()), " "))
	}
	t, err := f.tlsConfig(filepath.Dir(c.name))
	if err != nil {
		return fault.Inputf("%s: %w", c.name, err)
	}
	for user, hash := range f.Users {
		if _, err := bcrypt.Cost([]byte(hash)); err != nil {
			return fault.Inputf("%s: the password of user %q is not hashed by bcrypt: %w", c.name, user, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != nil && (c.tls == nil) != (t == nil) {
		return fault.Inputf("%s: TLS cannot be switched on or off without a restart", c.name)
	}
	c.file, c.tls, c.seen = f, t, map[[sha256.Size]byte]bool{}
	return nil
}

func (c *webConfig) secure() bool { return c.tls != nil }

// tlsConfig reads the certificates; nil for none.
func (f *webFile) tlsConfig(dir string) (*tls.Config, error) {
	o := &f.TLS
	if o.Cert == "" && o.Key == "" && o.ClientCA == "" && o.ClientAuth == "" {
		return nil, nil
	}
	at := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	cert, err := tls.LoadX509KeyPair(at(o.Cert), at(o.Key))
	if err != nil {
		return nil, err
	}
	t := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if f.HTTP.HTTP2 == nil || *f.HTTP.HTTP2 {
		t.NextProtos = []string{"h2", "http/1.1"}
	} else {
		t.NextProtos = []string{"http/1.1"}
	}
	if err := errors.Join(version(&t.MinVersion, o.Min), version(&t.MaxVersion, o.Max), o.clients(t, at)); err != nil {
		return nil, err
	}
	for _, name := range o.Ciphers {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fault.Inputf("cipher_suites: %q is not one of Go's secure ones", name)
		}
		t.CipherSuites = append(t.CipherSuites, tls.CipherSuites()[i].ID)
	}
	curves := map[string]tls.CurveID{"CurveP256": tls.CurveP256, "CurveP384": tls.CurveP384, "CurveP521": tls.CurveP521, "X25519": tls.X25519}
	for _, name := range o.Curves {
		id, ok := curves[name]
		if !ok {
			return nil, fault.Inputf("curve_preferences: %q is none of CurveP256, CurveP384, CurveP521, X25519", name)
		}
		t.CurvePreferences = append(t.CurvePreferences, id)
	}
	return t, nil
}

// clients says which certificates clients must have.
func (o *webTLS) clients(t *tls.Config, at func(string) string) error {
	kinds := map[string]tls.ClientAuthType{"": tls.NoClientCert, "NoClientCert": tls.NoClientCert, "RequestClientCert": tls.RequestClientCert,
		"RequireAnyClientCert": tls.RequireAnyClientCert, "VerifyClientCertIfGiven": tls.VerifyClientCertIfGiven,
		"RequireAndVerifyClientCert": tls.RequireAndVerifyClientCert}
	kind, ok := kinds[o.ClientAuth]
	if !ok {
		return fault.Inputf("client_auth_type: %q is none of Go's types", o.ClientAuth)
	}
	t.ClientAuth = kind
	if o.ClientCA != "" {
		text, err := os.ReadFile(at(o.ClientCA))
		if err != nil {
			return err
		}
		t.ClientCAs = x509.NewCertPool()
		if !t.ClientCAs.AppendCertsFromPEM(text) {
			return fault.Inputf("client_ca_file: %s has no certificates", o.ClientCA)
		}
		if kind == tls.NoClientCert {
			return fault.Inputf("client_ca_file: clients are not asked for certificates: set client_auth_type")
		}
	}
	if names := o.ClientNames; len(names) > 0 {
		t.VerifyPeerCertificate = func(_ [][]byte, chains [][]*x509.Certificate) error {
			for _, chain := range chains {
				c := chain[0]
				all := slices.Concat(c.DNSNames, c.EmailAddresses)
				for _, ip := range c.IPAddresses {
					all = append(all, ip.String())
				}
				for _, u := range c.URIs {
					all = append(all, u.String())
				}
				if slices.ContainsFunc(all, func(name string) bool { return slices.Contains(names, name) }) {
					return nil
				}
			}
			return errors.New("the client's certificate has none of the names in client_allowed_sans")
		}
	}
	return nil
}

// version sets a version of TLS by its name.
func version(to *uint16, name string) error {
	versions := map[string]uint16{"TLS13": tls.VersionTLS13, "TLS12": tls.VersionTLS12, "TLS11": tls.VersionTLS11, "TLS10": tls.VersionTLS10}
	switch v, ok := versions[name]; {
	case ok:
		*to = v
	case name != "":
		return fault.Inputf("%q is none of TLS13, TLS12, TLS11, TLS10", name)
	}
	return nil
}

// secured has the server ask for the configuration at each connection, as it may be read
// anew.
func (w *web) secured() {
	w.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: w.config.tls.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			w.config.mu.Lock()
			defer w.config.mu.Unlock()
			return w.config.tls, nil
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { // never asked, but ServeTLS wants one
			w.config.mu.Lock()
			defer w.config.mu.Unlock()
			return &w.config.tls.Certificates[0], nil
		},
	}
}

// header sets the headers that the file has.
func (c *webConfig) header(h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, value := range c.file.HTTP.Header {
		h.Set(name, value)
	}
}

// mostSeen bounds how many right passwords are remembered.
const mostSeen = 100

// checking bounds how many passwords are hashed at a time: that takes long by design.
var checking = make(chan struct{}, 1)

// nobody is hashed for users that do not exist, so that they take as long.
const nobody = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

// allows reports whether a request has the name and password of a user, if there are any.
func (c *webConfig) allows(r *http.Request) bool {
	c.mu.Lock()
	users, seen := c.file.Users, c.seen
	c.mu.Unlock()
	if len(users) == 0 {
		return true
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return false
	}
	hash, known := users[user]
	if !known {
		hash = nobody
	}
	key := sha256.Sum256([]byte(user + "\x00" + hash + "\x00" + password))
	c.mu.Lock()
	right := seen[key]
	c.mu.Unlock()
	if right {
		return known
	}
	checking <- struct{}{}
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	<-checking
	if err != nil || !known {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(seen) < mostSeen {
		seen[key] = true
	}
	return true
}
