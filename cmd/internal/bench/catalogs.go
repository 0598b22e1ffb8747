package bench

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// recorded is the tools/list answer of a real server.
type recorded struct {
	file string
	name string
	list []json.RawMessage // definitions, of all pages
}

// readCatalogs reads every recorded catalogue below dir, sorted by path. Of
// several with one name the first counts.
func readCatalogs(dir string) (all []recorded, err error) {
	seen := map[string]bool{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		r, err := readCatalog(path)
		if err == nil && !seen[r.name] {
			seen[r.name] = true
			all = append(all, r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("catalogues: %w; name a folder of recorded tools/list answers with --catalogs", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no recorded catalogue (*.json) in %s; name their folder with --catalogs", dir)
	}
	return all, nil
}

// readCatalog reads one: its tools stand under "tools", or in raw pages.
func readCatalog(path string) (recorded, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return recorded{}, err
	}
	var doc struct {
		Name     string            `json:"name"`
		Tools    []json.RawMessage `json:"tools"`
		RawPages []struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"rawPages"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return recorded{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range doc.RawPages {
		doc.Tools = append(doc.Tools, p.Tools...)
	}
	if doc.Name == "" || len(doc.Tools) == 0 {
		return recorded{}, fmt.Errorf("%s holds no name and tools: it is no recorded tools/list answer", path)
	}
	return recorded{path, doc.Name, doc.Tools}, nil
}
