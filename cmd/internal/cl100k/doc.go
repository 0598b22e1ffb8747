// Package cl100k counts tokens the way a real model's tokenizer does, for the
// commands that report costs. The router never counts: it estimates by
// characters, so that the vocabulary (some 40 MB once read) stays unread.
//
// Importing the package reads nothing; [New] does. It keeps no state on disk
// and reaches no network.
package cl100k
