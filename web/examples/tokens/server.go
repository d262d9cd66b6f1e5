// A server that gives access tokens, with nothing but the standard library:
//
//	HOLDFAST_API_KEYS=NAME:SECRET ORIGIN=http://localhost:8000 go run . 127.0.0.1:8090
//	curl 'http://127.0.0.1:8090/token?room=hall&name=Ada'
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// mint signs what a person may do (docs/API.md has all grants) with the key that signaling nodes have.
func mint(key, secret, identity, name, room string) (string, error) {
	claims, err := json.Marshal(map[string]any{
		"iss": key, "sub": identity, "name": name, "exp": time.Now().Add(10 * time.Minute).Unix(),
		"video": map[string]any{"roomJoin": true, "room": room},
	})
	if err != nil {
		return "", err
	}
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + part(claims)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + part(mac.Sum(nil)), nil
}

func main() {
	first, _, _ := strings.Cut(os.Getenv("HOLDFAST_API_KEYS"), ",")
	key, secret, ok := strings.Cut(strings.TrimSpace(first), ":")
	if !ok || len(os.Args) < 2 {
		log.Fatal("usage: HOLDFAST_API_KEYS=NAME:SECRET go run . HOST:PORT")
	}
	http.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		room, name := r.FormValue("room"), r.FormValue("name")
		if room == "" || name == "" {
			http.Error(w, "room and name are missing", http.StatusBadRequest)
			return
		}
		// Put your own here: who is logged in, and whether that person may enter the room. An identity is one person's.
		token, err := mint(key, secret, name, name, room)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", os.Getenv("ORIGIN")) // of the page that asks
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token})
	})
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/token\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
