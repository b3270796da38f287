import type { BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { submitForm } from './test-hub.ts';

/** Sends the first form in the content of a page, which is not that of the navigation. */
export function submitMain(
  browser: FakeBrowser,
  page: BrowserAnswer,
  values: Readonly<Record<string, string>>,
): Promise<BrowserAnswer> {
  return submitForm(
    browser,
    { ...page, body: page.body.slice(page.body.indexOf('<main')) },
    values,
  );
}

/**
 * Sends the form of a page that goes to an address, by itself or by one of its buttons; `part` is text that stands in
 * the form.
 */
export function submitTo(
  browser: FakeBrowser,
  page: BrowserAnswer,
  action: string,
  values: Readonly<Record<string, string>> = {},
  part = '',
): Promise<BrowserAnswer> {
  for (const [form] of page.body.matchAll(/<form[\s\S]*?<\/form>/g)) {
    if (!form.includes(part)) continue;
    if (form.includes(` action="${action}"`) || form.includes(` action="${action}#`)) {
      return submitForm(browser, { ...page, body: form }, values);
    }
    if (form.includes(` formaction="${action}"`)) {
      const body = form.replace(/ action="[^"]*"/, ` action="${action}"`);
      return submitForm(browser, { ...page, body }, values);
    }
  }
  throw new Error(`no form to ${action} on the page: ${page.body.slice(0, 3000)}`);
}

/** Names of the fields that are said to be wrong, of which a page shows the first with the focus. */
export function fieldsWithFocus(page: string): string[] {
  const controls = page.matchAll(/<(?:input|select|textarea)\b[^>]*>/g);
  return [...controls].flatMap(([control]) =>
    / autofocus/.test(control) && / aria-invalid="true"/.test(control)
      ? [/ name="([^"]*)"/.exec(control)?.[1] ?? '']
      : [],
  );
}
