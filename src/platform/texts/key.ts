/** What a text is called in the catalogues: the English source, after its context where it has one. */
export function keyOf(source: string, context?: string): string {
  return context === undefined ? source : `${context}::${source}`;
}

/** The English source of a key. */
export function sourceOf(key: string): string {
  return key.replace(/^[a-z][a-z ]*::/, '');
}
