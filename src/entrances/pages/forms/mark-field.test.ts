import { expect, test } from 'vitest';
import { markField } from './mark-field.ts';

const page = `<!doctype html><html><head></head><body><input name="url" autofocus><form method="post" action="/hub/x#part">
<div class="notice bad">Above.</div><input type="hidden" name="url" value="1"><details><div class="field"><label for="u">URL</label>
<input id="u" name="url" aria-describedby="u-help"><p id="u-help">Help.</p></div></details>
<div class="field"><textarea id="h" name="headers.request.set"></textarea></div></form></body></html>`;
const mark = (name: string, action = '/hub/x') =>
  markField(page, action, { name, problem: 'Not <one>.' });

test('what is wrong stands beside its field, which has the focus and is unfolded', async () => {
  const marked = await mark('changes.url');
  expect(marked).toContain(
    '<input id="u" name="url" aria-describedby="u-problem u-help" autofocus="" aria-invalid="true"><p class="problem" id="u-problem">Not &lt;one&gt;.</p>',
  );
  expect(marked.match(/autofocus/g)).toHaveLength(1);
  expect(marked).toContain('<details open="">');
  expect(marked).not.toContain('Above.');
});

test('the field is that of the longest part of the path', async () => {
  expect(await mark('changes.headers.request.set.X-Key')).toContain('id="h-problem"');
});

test('of several in a list the field is the one of the list', async () => {
  expect(await mark('headers.request.set[0]')).toContain('id="h-problem"');
});

test('what is wrong with a choice stands among the choices', async () => {
  const choices = `<form method="post" action="/hub/x"><fieldset class="choices"><legend>What</legend><label class="choice"><input
    type="radio" name="may" value="a"></label><label class="choice"><input type="radio" name="may" value="b" checked></label></fieldset></form>`;
  const marked = await markField(choices, '/hub/x', { name: 'may', problem: 'None.' });
  expect(marked).toMatch(
    /value="b" checked="" autofocus="" aria-invalid="true" aria-describedby="may-problem"><\/label><p class="problem" id="may-problem">None\./,
  );
});

test.each([
  ['a member without a field', 'changes.limits', '/hub/x'],
  ['another form', 'url', '/hub/y'],
])('a page is left as it is for %s', async (_, name, action) => {
  expect(await mark(name, action)).toBe(page);
});
