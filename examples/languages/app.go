package main

import (
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Names and groups are percent-encoded where a header could not hold them.
func decoded(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

func greet(answer http.ResponseWriter, request *http.Request) {
	name := decoded(request.Header.Get("X-Hub-User"))
	if name == "" {
		http.Error(answer, "This page is for visitors of the hub.", http.StatusForbidden)
		return
	}
	groups := strings.Split(request.Header.Get("X-Hub-Groups"), ",")
	for at, group := range groups {
		groups[at] = decoded(group)
	}
	fmt.Fprintf(answer, "Hello, %s. Groups: %s", name, strings.Join(groups, ", "))
}

func main() {
	address, err := url.Parse(os.Getenv("HUB_SERVICE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", greet)
	log.Fatal(http.ListenAndServe(address.Host, nil))
}
