import type { DefaultTreeAdapterTypes } from 'parse5';

export type Node = DefaultTreeAdapterTypes.Node;
export type Element = DefaultTreeAdapterTypes.Element;

/** Whether a form, or a button of it, sends to a path. */
export function isSentTo(form: Element, action: string): boolean {
  const pathOf = (address: string | undefined) => address?.split(/[?#]/, 1)[0];
  return [form, ...elementsIn(form)].some(
    (element) => pathOf(attribute(element, element === form ? 'action' : 'formaction')) === action,
  );
}

/** All below a node, in the order of the page. */
export function elementsIn(node: Node): Element[] {
  if (!('childNodes' in node)) return [];
  return node.childNodes.flatMap((child) => [
    ...('tagName' in child ? [child] : []),
    ...elementsIn(child),
  ]);
}

export function parentOf(node: Node): Node | null {
  return 'parentNode' in node ? node.parentNode : null;
}

export function attribute({ attrs }: Element, name: string): string | undefined {
  return attrs.find((each) => each.name === name)?.value;
}

export function set(element: Element, name: string, value: string): void {
  const existing = element.attrs.find((each) => each.name === name);
  if (existing === undefined) element.attrs.push({ name, value });
  else existing.value = value;
}

export function toggle(element: Element, name: string, isSet: boolean): void {
  if (isSet) set(element, name, '');
  else element.attrs = element.attrs.filter((each) => each.name !== name);
}

export function textOf(element: Element): string {
  return element.childNodes.map((child) => ('value' in child ? child.value : '')).join('');
}

export function setText(element: Element, value: string): void {
  element.childNodes = [{ nodeName: '#text', value, parentNode: element }];
}

/** Opens what is folded around an element. */
export function unfold(element: Element): void {
  for (let parent: Node | null = element; parent !== null; parent = parentOf(parent)) {
    if ('tagName' in parent && parent.tagName === 'details') set(parent, 'open', '');
  }
}
