// Yields the events of the hub's API. Not an EventSource: that cannot send the token by which the hub knows its own
// pages.
export async function* events(url, signal) {
  const response = await fetch(url, {
    headers: {
      accept: 'text/event-stream',
      'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
    },
    cache: 'no-store',
    signal,
  });
  if (!response.ok)
    throw Object.assign(new Error(`answered with ${response.status}`), { status: response.status });
  let text = '';
  for await (const piece of pieces(response.body.pipeThrough(new TextDecoderStream()))) {
    const parts = (text + piece).split('\n\n');
    text = parts.pop();
    for (const part of parts) if (part.startsWith('data:')) yield JSON.parse(part.slice(5));
  }
}

// Not every browser can iterate a stream.
async function* pieces(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
