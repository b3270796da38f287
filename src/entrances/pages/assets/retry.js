// Asks quietly whether what was unavailable answers again, and only then reloads the page.
const panel = document.querySelector('[data-retry-seconds]');
if (panel !== null) schedule(Number(panel.dataset.retrySeconds));

function schedule(seconds) {
  setTimeout(async () => {
    try {
      const response = await fetch(location.href, {
        method: 'HEAD',
        headers: {
          'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
        },
        cache: 'no-store',
        redirect: 'manual',
      });
      if (![502, 503, 504].includes(response.status)) {
        location.reload();
        return;
      }
    } catch {
      // Not reachable at all: the next round asks again.
    }
    schedule(Math.min(seconds * 1.5, 30));
  }, seconds * 1000);
}
