package catalogue

import (
	"strings"
	"testing"
)

func needy(o Options) *Catalogue {
	return New([]Server{
		{Name: "hub", State: Up, Tools: ReadTools("hub", raws(
			`{"name":"close_issue","description":"Close an issue","inputSchema":{"properties":{"repo":{"type":"string"},"issue_number":{"type":"integer"},"reason":{"type":"string"},"state":{"enum":["a"]}},"required":["repo","issue_number","reason","state"]}}`,
			`{"name":"create_issue","inputSchema":{"properties":{"repo":{},"title":{}},"required":["repo","title"]}}`,
			`{"name":"list_issues","inputSchema":{"properties":{"repo":{}},"required":["repo"]}}`,
			`{"name":"search_repositories","inputSchema":{"properties":{"query":{}}}}`,
		))},
		{Name: "crm", State: Up, Tools: ReadTools("crm", raws(
			`{"name":"send_invoice","description":"Send an invoice","inputSchema":{"properties":{"accountRef":{},"a":{},"b":{},"c":{}},"required":["accountRef","a","b","c"]}}`,
			`{"name":"whoever","outputSchema":{"properties":{"rows":{"items":{"properties":{"account_ref":{},"a":{},"b":{},"c":{}}}}}}}`,
			`{"name":"issue_repo_list"}`,
		))},
	}, o)
}

func TestNeeds(t *testing.T) {
	for query, want := range map[string]string{
		"close issue":  "    needs repo from: hub.search_repositories\n    needs issue_number from: hub.list_issues", // by name, the same server first
		"send_invoice": "    needs accountRef from: crm.whoever\n    needs a from: crm.whoever\n    needs b from: crm.whoever",
		"whoever":      "",
	} {
		text, _, err := needy(Options{Needs: true}).Search(query, "", 1)
		var needs []string
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Contains(line, "needs ") {
				needs = append(needs, line)
			}
		}
		if got := strings.Join(needs, "\n"); err != nil || got != want {
			t.Errorf("%s:\n%s\nwant\n%s (%v)", query, got, want, err)
		}
		if plain, _, _ := needy(Options{}).Search(query, "", 1); strings.Contains(plain, "needs ") {
			t.Errorf("%s: hints without being asked for", query)
		}
	}
	hidden := needy(Options{Needs: true, Visible: func(t Tool) bool { return t.Name != "search_repositories" }})
	if text, _, _ := hidden.Search("close issue", "", 1); strings.Contains(text, "search_repositories") {
		t.Error("a hidden tool is hinted at")
	}
}
