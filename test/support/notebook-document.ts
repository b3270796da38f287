/** A notebook of one cell of Python, as a file of nbformat 4. */
export function notebookOf(source: readonly string[]) {
  return {
    nbformat: 4,
    nbformat_minor: 4,
    metadata: { kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' } },
    cells: [{ cell_type: 'code', execution_count: null, metadata: {}, outputs: [], source }],
  };
}
