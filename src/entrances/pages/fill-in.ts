import {
  attribute,
  type Element,
  elementsIn,
  isSentTo,
  set,
  setText,
  textOf,
  toggle,
  unfold,
} from './page-tree.ts';

/**
 * Fields that hold a secret, by their names: passwords, codes, and what protects a form. A test holds that
 * these are all that pages have.
 */
export const secretFields: ReadonlySet<string> = new Set([
  '_csrf',
  'code',
  'current_password',
  'new_password',
  'password',
  'repeat_password',
]);

/**
 * A page of the hub with the form that is sent to `action` filled in: what can be seen of it, and no password. The
 * page as it was where it has no such form, or what the form stands for, such as the user it changes, is another.
 */
export async function fillIn(
  page: string,
  action: string,
  values: URLSearchParams,
): Promise<string> {
  // Hardly a page needs it.
  const { parse, serialize } = await import('parse5');
  const document = parse(page);
  const form = elementsIn(document).find(
    (element) => element.tagName === 'form' && isSentTo(element, action) && isSame(element, values),
  );
  if (form === undefined) return page;
  const left = new Map<string, string[]>();
  for (const name of values.keys()) left.set(name, values.getAll(name));
  for (const control of elementsIn(form)) fillInControl(control, left);
  unfold(form);
  return serialize(document);
}

function fillInControl(control: Element, left: ReadonlyMap<string, string[]>): void {
  const name = attribute(control, 'name');
  if (name === undefined || name === '') return;
  const sent = left.get(name) ?? [];
  const value = attribute(control, 'value') ?? 'on';
  switch (control.tagName) {
    case 'textarea':
      setText(control, sent.shift() ?? '');
      break;
    case 'select':
      for (const option of elementsIn(control).filter(({ tagName }) => tagName === 'option')) {
        toggle(option, 'selected', sent.includes(attribute(option, 'value') ?? textOf(option)));
      }
      break;
    case 'input':
      if (unseen.has(attribute(control, 'type') ?? 'text')) break;
      if (['checkbox', 'radio'].includes(attribute(control, 'type') ?? '')) {
        toggle(control, 'checked', sent.includes(value));
      } else set(control, 'value', sent.shift() ?? '');
  }
}

const unseen = new Set(['hidden', 'password', 'submit', 'button', 'reset', 'image', 'file']);

/** Whether the form is about the same as the one that was sent. */
function isSame(form: Element, values: URLSearchParams): boolean {
  return elementsIn(form).every((element) => {
    const name = attribute(element, 'name') ?? '';
    // Of a page that was shown again, what it knew may have changed; its version is told when it is sent.
    if (attribute(element, 'type') !== 'hidden' || ['_csrf', 'version', ''].includes(name))
      return true;
    return values.getAll(name).includes(attribute(element, 'value') ?? '');
  });
}
