import {
  attribute,
  type Element,
  elementsIn,
  isSentTo,
  type Node,
  parentOf,
  set,
  setText,
  toggle,
  unfold,
} from '../page-tree.ts';

/**
 * A page of the hub on which what is wrong with a field stands beside it, in place of the notice above the form that
 * is sent to `action`, and the field has the focus. The page as it was where the form has no such field.
 */
export async function markField(
  page: string,
  action: string,
  { name, problem }: { readonly name: string; readonly problem: string },
): Promise<string> {
  // Mistakes are rare.
  const { parse, serialize, parseFragment } = await import('parse5');
  const document = parse(page);
  const form = elementsIn(document).find(
    (element) => element.tagName === 'form' && isSentTo(element, action),
  );
  const control = form && controlOf(form, name);
  if (form === undefined || control === undefined) return page;
  for (const element of elementsIn(document)) toggle(element, 'autofocus', element === control);
  unfold(control);
  if (attribute(control, 'aria-invalid') !== undefined) return serialize(document);
  const id = `${attribute(control, 'id') ?? attribute(control, 'name')}-problem`;
  set(control, 'aria-invalid', 'true');
  set(
    control,
    'aria-describedby',
    [id, attribute(control, 'aria-describedby') ?? []].flat().join(' '),
  );
  const [said] = elementsIn(parseFragment('<p class="problem"></p>'));
  const place = placeBelow(control);
  if (said === undefined || place === undefined) return page;
  set(said, 'id', id);
  setText(said, problem);
  const { parentNode } = place;
  said.parentNode = parentNode;
  parentNode?.childNodes.splice(parentNode.childNodes.indexOf(place) + 1, 0, said);
  const notice = elementsIn(form).find(({ attrs }) =>
    attrs.some((each) => each.name === 'class' && /^notice bad\b/.test(each.value)),
  );
  if (notice?.parentNode) {
    const { childNodes } = notice.parentNode;
    childNodes.splice(childNodes.indexOf(notice), 1);
  }
  return serialize(document);
}

/** The field whose name is most of the path of a member: `url` for `changes.url`, `scopes` for `scopes[0]`. */
function controlOf(form: Element, path: string): Element | undefined {
  const members = `.${path.replaceAll('[', '.[')}.`;
  const nameOf = (element: Element) => attribute(element, 'name') ?? '';
  return elementsIn(form)
    .filter(
      (element) =>
        ['input', 'select', 'textarea'].includes(element.tagName) &&
        attribute(element, 'type') !== 'hidden' &&
        nameOf(element) !== '' &&
        members.includes(`.${nameOf(element)}.`),
    )
    .toSorted(
      (one, other) =>
        nameOf(other).length - nameOf(one).length ||
        Number(isChosen(other)) - Number(isChosen(one)),
    )[0];
}

/** Of choices, the one with the focus is that which was made. */
const isChosen = (element: Element): boolean => attribute(element, 'checked') !== undefined;

/** What stands in the field of a control, with its label and help. */
function placeBelow(control: Element): Element | undefined {
  const isField = (node: Node | null) =>
    node !== null &&
    'attrs' in node &&
    /^(?:field|check|choices)\b/.test(attribute(node, 'class') ?? '');
  for (let place: Node | null = control; place !== null; place = parentOf(place)) {
    if ('tagName' in place && isField(parentOf(place))) return place;
  }
  return undefined;
}
