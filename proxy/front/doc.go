// Package front is the MCP server that a client sees.
package front
