/**
 * What pages ask by themselves, whether or not somebody looks at them: lists and states of Jupyter, the health of
 * Streamlit and code-server, the events of RStudio.
 */
const periodic =
  /\/(?:api\/(?:(?:contents|kernels|kernelspecs|sessions|terminals)(?:\/.*)?|status|me|metrics\/v1)|_stcore\/(?:health|host-config)|healthz|events\/get_events)$/;

/** Whether a request says nothing of its visitor. */
export function isPeriodic(method: string, url: string): boolean {
  const [path = ''] = url.split('?', 1);
  return (method === 'GET' || path.endsWith('/get_events')) && periodic.test(path);
}
