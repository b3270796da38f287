import type { DefaultTreeAdapterTypes } from 'parse5';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

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
  for (let parent: Node | null = form; parent !== null; parent = parentOf(parent)) {
    if ('tagName' in parent && parent.tagName === 'details') set(parent, 'open', '');
  }
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

function isSentTo(form: Element, action: string): boolean {
  const pathOf = (address: string | undefined) => address?.split('?', 1)[0];
  return [form, ...elementsIn(form)].some(
    (element) => pathOf(attribute(element, element === form ? 'action' : 'formaction')) === action,
  );
}

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

function elementsIn(node: Node): Element[] {
  if (!('childNodes' in node)) return [];
  return node.childNodes.flatMap((child) => [
    ...('tagName' in child ? [child] : []),
    ...elementsIn(child),
  ]);
}

function parentOf(node: Node): Node | null {
  return 'parentNode' in node ? node.parentNode : null;
}

function attribute({ attrs }: Element, name: string): string | undefined {
  return attrs.find((each) => each.name === name)?.value;
}

function set(element: Element, name: string, value: string): void {
  const existing = element.attrs.find((each) => each.name === name);
  if (existing === undefined) element.attrs.push({ name, value });
  else existing.value = value;
}

function toggle(element: Element, name: string, isSet: boolean): void {
  if (isSet) set(element, name, '');
  else element.attrs = element.attrs.filter((each) => each.name !== name);
}

function textOf(element: Element): string {
  return element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
}

function setText(element: Element, value: string): void {
  element.childNodes = [{ nodeName: '#text', value, parentNode: element }];
}
