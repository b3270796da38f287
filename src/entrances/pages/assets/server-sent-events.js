// The hub writes at least every 8 seconds. A connection that broke while the computer slept may say nothing for ever.
const mostSilenceMs = 30_000;

// Yields the events of the hub's API. Not an EventSource: that cannot send the token by which the hub knows its own
// pages.
export async function* events(url, signal) {
  const connection = new AbortController();
  const end = () => connection.abort();
  signal?.addEventListener('abort', end);
  let silence;
  const expectMore = () => {
    clearTimeout(silence);
    silence = setTimeout(end, mostSilenceMs);
  };
  expectMore();
  try {
    for await (const piece of piecesOf(url, connection.signal)) {
      expectMore();
      yield* piece;
    }
  } finally {
    clearTimeout(silence);
    signal?.removeEventListener('abort', end);
    end();
  }
}

// The events in each piece of the answer.
async function* piecesOf(url, signal) {
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
    yield parts.filter((part) => part.startsWith('data:')).map((part) => JSON.parse(part.slice(5)));
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
