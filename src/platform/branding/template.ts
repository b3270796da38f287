import type { Token } from 'parse5';
import { isLinkTarget } from '../config/branding-schema.ts';
import { didYouMean } from '../config/suggestion.ts';

/** A part of a page that the operator wrote, checked and cut at its placeholders. It can be written as JSON. */
export type Template = readonly TemplateSegment[];

export type TemplateSegment =
  /** Markup as it is sent. */
  | string
  /** The place of a value: escaped as text, or as a part of an address. */
  | { readonly name: Placeholder; readonly isInAddress: boolean };

const everywhere = ['hub_title', 'home_url', 'login_url'] as const;
const ofUser = ['user_name', 'user_display_name'] as const;

/** The parts of pages that can be overridden, each with the placeholders that it may hold. */
export const templatePlaceholders = {
  login: [...everywhere, 'login_form'],
  'login-intro': everywhere,
  'home-intro': [...everywhere, ...ofUser],
  'error-help': [...everywhere, ...ofUser, 'error_status', 'request_id'],
  footer: [...everywhere, ...ofUser],
} as const;

export type TemplateName = keyof typeof templatePlaceholders;
export type Placeholder = (typeof templatePlaceholders)[TemplateName][number];

/** Stands for markup, not for text. */
export const formPlaceholder = 'login_form';

/** What is wrong with a template, with the line, counted from 1. */
export interface TemplateProblem {
  readonly line: number;
  readonly message: string;
}

const emptyElements = ['br', 'hr', 'img'];
const elements: readonly string[] = [
  ...emptyElements,
  ...['a', 'abbr', 'address', 'b', 'blockquote', 'code', 'dd', 'details', 'div', 'dl', 'dt', 'em'],
  ...['figcaption', 'figure', 'h2', 'h3', 'h4', 'i', 'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q'],
  ...['section', 'small', 'span', 'strong', 'sub', 'summary', 'sup', 'time', 'ul'],
];
const attributesOfAll: readonly string[] = ['class', 'dir', 'lang', 'role', 'title', 'translate'];
const attributesOf: Readonly<Record<string, readonly string[]>> = {
  a: ['href', 'hreflang', 'rel', 'target'],
  details: ['open'],
  img: ['alt', 'height', 'src', 'width'],
  ol: ['reversed', 'start', 'type'],
  time: ['datetime'],
};

const whyNot: Readonly<Record<string, string>> = {
  script: 'the content security policy of the hub lets no script run; remove it',
  style: 'the content security policy of the hub ignores it; put the rules into Hub.custom_css',
  link: 'put the rules into Hub.custom_css',
  html: 'this is a part of a page: leave <html>, <head> and <body> out',
  head: 'this is a part of a page: leave <html>, <head> and <body> out',
  body: 'this is a part of a page: leave <html>, <head> and <body> out',
  h1: 'the page has one already; use <h2>',
  form: 'the hub takes forms of its own pages alone; use a link',
  iframe: 'the content security policy of the hub shows none; use a link',
  svg: 'use <img> with the path of the image',
};

const placeholderPattern = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** Checks the HTML of a template and cuts it at its placeholders. Gives every problem there is. */
export async function compileTemplate(
  name: TemplateName,
  text: string,
): Promise<{ readonly template: Template; readonly problems: readonly TemplateProblem[] }> {
  const { Tokenizer } = await import('parse5');
  const compiler = createCompiler(name);
  const tokenizer = new Tokenizer({ sourceCodeLocationInfo: true }, compiler.handler);
  tokenizer.write(text, true);
  return compiler.result();
}

function createCompiler(name: TemplateName) {
  const known: readonly Placeholder[] = templatePlaceholders[name];
  const segments: TemplateSegment[] = [];
  const problems: TemplateProblem[] = [];
  const open: { readonly element: string; readonly line: number }[] = [];
  let characters = '';
  let charactersLine = 1;
  let forms = 0;

  const report = (line: number, message: string) => void problems.push({ line, message });

  /** Escapes a text and puts the places of its values in between. */
  function put(
    text: string,
    line: number,
    { isInAddress, isText }: { readonly isInAddress: boolean; readonly isText: boolean },
  ): void {
    let at = 0;
    const lineOf = (index: number) => line + (text.slice(0, index).match(/\n/g)?.length ?? 0);
    const putText = (part: string, index: number) => {
      const stray = /\{\{|\}\}/.exec(part);
      if (stray !== null) {
        const message = `${stray[0]} belongs to no placeholder; write one as {{user_name}}`;
        report(lineOf(index + stray.index), message);
      }
      segments.push(escapeText(part));
    };
    for (const match of text.matchAll(placeholderPattern)) {
      putText(text.slice(at, match.index), at);
      at = match.index + match[0].length;
      const [, wanted = ''] = match;
      const placeholder = known.find((each) => each === wanted);
      const here = lineOf(match.index);
      if (placeholder === undefined) {
        const hint = didYouMean(wanted, known);
        const list = known.map((each) => `{{${each}}}`).join(', ');
        report(here, `{{${wanted}}} is no placeholder here; there are ${list}${hint}`);
      } else if (placeholder === formPlaceholder && !isText) {
        report(here, `{{${placeholder}}} stands between elements, not in an attribute`);
      } else if (isInAddress && match.index === 0 && !placeholder.endsWith('_url')) {
        report(here, `an address cannot begin with {{${placeholder}}}`);
      } else {
        if (placeholder === formPlaceholder) forms += 1;
        // What stands at the beginning is an address as a whole.
        segments.push({ name: placeholder, isInAddress: isInAddress && match.index > 0 });
      }
    }
    putText(text.slice(at), at);
  }

  function flush(): void {
    if (characters !== '') put(characters, charactersLine, { isInAddress: false, isText: true });
    characters = '';
  }

  function addCharacters({ chars, location }: Token.CharacterToken): void {
    if (characters === '') charactersLine = location?.startLine ?? 1;
    characters += chars;
  }

  function startTag({ tagName, attrs, location }: Token.TagToken): void {
    flush();
    const line = location?.startLine ?? 1;
    if (!elements.includes(tagName)) {
      report(
        line,
        `<${tagName}> cannot be used here: ${whyNot[tagName] ?? 'it is none of those that docs/how-to/give-it-your-look.md names'}`,
      );
    }
    if (tagName === 'img' && !attrs.some((attribute) => attribute.name === 'alt'))
      report(line, '<img> needs an alt, the text in its place; it may be empty');
    segments.push(`<${tagName}`);
    for (const { name: attribute, value } of attrs)
      putAttribute(
        tagName,
        { name: attribute, value },
        location?.attrs?.[attribute]?.startLine ?? line,
      );
    segments.push('>');
    if (!emptyElements.includes(tagName)) open.push({ element: tagName, line });
  }

  function putAttribute(
    element: string,
    { name: attribute, value }: Token.Attribute,
    line: number,
  ): void {
    const isAllowed =
      attributesOfAll.includes(attribute) ||
      attribute.startsWith('aria-') ||
      attributesOf[element]?.includes(attribute) === true;
    if (!isAllowed) report(line, explainAttribute(element, attribute));
    const isAddress = attribute === 'href' || attribute === 'src';
    if (isAddress) checkAddress(attribute, value, line);
    segments.push(` ${attribute}="`);
    put(value, line, { isInAddress: isAddress, isText: false });
    segments.push('"');
  }

  function checkAddress(attribute: string, value: string, line: number): void {
    const example = value
      .replace(/^\{\{\s*\w+_url\s*\}\}/, '/hub/')
      .replaceAll(placeholderPattern, 'x');
    if (attribute === 'src') {
      const isOwn = /^\/(?![/\\])/.test(example) || /^data:image\//i.test(example);
      const advice = 'give a path such as /services/files/logo.png, or a data: URL';
      if (!isOwn)
        report(line, `browsers load images of the hub's pages from the hub alone; ${advice}`);
    } else if (!isLinkTarget(example) && !example.startsWith('#')) {
      const advice = 'give an http:// or https:// URL, a mailto: address or a path such as /terms';
      report(line, `${JSON.stringify(value)} is no link; ${advice}`);
    }
  }

  function endTag({ tagName, location }: Token.TagToken): void {
    flush();
    const line = location?.startLine ?? 1;
    const last = open.at(-1);
    if (last?.element === tagName) {
      open.pop();
      segments.push(`</${tagName}>`);
      return;
    }
    if (!open.some(({ element }) => element === tagName)) {
      report(line, `</${tagName}> closes nothing; remove it`);
      return;
    }
    for (let top = open.pop(); top !== undefined && top.element !== tagName; top = open.pop())
      report(
        top.line,
        `<${top.element}> is not closed before </${tagName}> in line ${line}; add </${top.element}>`,
      );
  }

  const handler = {
    onStartTag: startTag,
    onEndTag: endTag,
    onCharacter: addCharacters,
    onWhitespaceCharacter: addCharacters,
    onNullCharacter: addCharacters,
    onComment: flush,
    onDoctype(token: Token.DoctypeToken) {
      report(token.location?.startLine ?? 1, 'this is a part of a page: leave <!doctype> out');
    },
    onEof: flush,
    onParseError({ code, startLine }: { readonly code: string; readonly startLine: number }) {
      report(startLine, `is not HTML: ${code.replaceAll('-', ' ')}`);
    },
  };

  return {
    handler,
    result() {
      for (const { element, line } of open)
        report(line, `<${element}> is never closed; add </${element}>`);
      if (known.includes(formPlaceholder) && forms !== 1) {
        const count = forms === 0 ? 'is missing' : 'stands more than once';
        report(
          1,
          `{{${formPlaceholder}}} ${count}: it is where people log in, and has to be there once`,
        );
      }
      return {
        template: joinTexts(segments),
        problems: problems.toSorted((left, right) => left.line - right.line),
      };
    },
  };
}

function explainAttribute(element: string, attribute: string): string {
  if (attribute.startsWith('on')) return `${attribute} is a script: ${whyNot['script']}`;
  if (attribute === 'style') return `style is of no use: ${whyNot['style']}`;
  return `<${element}> cannot have ${attribute} here; use class and Hub.custom_css`;
}

function joinTexts(segments: readonly TemplateSegment[]): Template {
  const joined: TemplateSegment[] = [];
  for (const segment of segments) {
    const last = joined.at(-1);
    if (typeof segment === 'string' && typeof last === 'string')
      joined[joined.length - 1] = last + segment;
    else if (segment !== '') joined.push(segment);
  }
  return joined;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"]/g, (sign) => entities[sign] ?? '');
}
