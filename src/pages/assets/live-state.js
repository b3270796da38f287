// Keeps marked regions of a page current: fetches the page again and exchanges what has changed.
const regions = () => Array.from(document.querySelectorAll('[data-live-seconds][id]'));
const seconds = Math.min(...regions().map((region) => Number(region.dataset.liveSeconds)));
if (Number.isFinite(seconds) && seconds >= 1) schedule();

function schedule() {
  setTimeout(refresh, seconds * 1000);
}

async function refresh() {
  try {
    if (document.visibilityState === 'visible' && !(await exchange())) return;
  } catch {
    // The hub does not answer for the moment; the next round asks again.
  }
  schedule();
}

// Whether to go on. A status alone says nothing: a page that waits may itself be an error page.
async function exchange() {
  const response = await fetch(location.href, {
    headers: {
      accept: 'text/html',
      'x-csrf-token': document.querySelector('meta[name="csrf-token"]')?.content ?? '',
    },
    cache: 'no-store',
  });
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  const pairs = regions().map((region) => [region, fresh.getElementById(region.id)]);
  if (response.redirected || pairs.every(([, replacement]) => replacement === null)) {
    if (response.status >= 500) return true;
    location.reload();
    return false;
  }
  for (const [region, replacement] of pairs) {
    if (replacement === null || region.contains(document.activeElement)) continue;
    keepOpen(region, replacement);
    if (region.outerHTML !== replacement.outerHTML) {
      region.replaceWith(document.importNode(replacement, true));
    }
  }
  return true;
}

// What the person has unfolded or folded stays as it is.
function keepOpen(region, replacement) {
  const before = region.querySelectorAll('details');
  for (const [index, details] of replacement.querySelectorAll('details').entries()) {
    if (before[index] !== undefined) details.open = before[index].open;
  }
}
