import { describe, expect, test } from 'vitest';
import { compileTemplate, type TemplateName } from './template.ts';

async function problemsOf(name: TemplateName, text: string): Promise<string[]> {
  const { problems } = await compileTemplate(name, text);
  return problems.map(({ line, message }) => `${line}: ${message}`);
}

describe('a template', () => {
  test('is cut at its placeholders, and what is between them is escaped again', async () => {
    const { template, problems } = await compileTemplate(
      'home-intro',
      '<!-- ours -->\n<p CLASS=big>Hello {{ user_name }} &amp; all, 1 &lt; 2</p><br/>',
    );
    expect(problems).toEqual([]);
    expect(template).toEqual([
      '\n<p class="big">Hello ',
      { name: 'user_name', isInAddress: false },
      ' &amp; all, 1 &lt; 2</p><br>',
    ]);
  });

  test('may build an address of values, which then are encoded as parts of one', async () => {
    const { template, problems } = await compileTemplate(
      'error-help',
      '<a href="mailto:help@example.org?subject={{request_id}}">Mail</a><a href="{{home_url}}#top">Home</a>',
    );
    expect(problems).toEqual([]);
    expect(template.filter((piece) => typeof piece !== 'string')).toEqual([
      { name: 'request_id', isInAddress: true },
      { name: 'home_url', isInAddress: false },
    ]);
  });

  test.for<[string, TemplateName, string, string]>([
    [
      'an unknown placeholder',
      'footer',
      '<p>\n{{user_nam}}</p>',
      '2: {{user_nam}} is no placeholder here; there are {{hub_title}}, {{home_url}}, {{login_url}}, {{user_name}}, {{user_display_name}}; did you mean `user_name`?',
    ],
    [
      'one of another part',
      'login-intro',
      '{{user_name}}',
      '1: {{user_name}} is no placeholder here',
    ],
    ['one that does not end', 'footer', '<p>{{user_name}</p>', '1: {{ belongs to no placeholder'],
    [
      'an element that is never closed',
      'footer',
      '\n<div><p>Hi</p>',
      '2: <div> is never closed; add </div>',
    ],
    [
      'one that is closed too late',
      'footer',
      '<div>\n<p>Hi</div>',
      '2: <p> is not closed before </div> in line 2; add </p>',
    ],
    ['an end without a beginning', 'footer', 'Hi</div>', '1: </div> closes nothing; remove it'],
    ['a tag that is cut off', 'footer', '<p>Hi</p>\n<a href="/x', '2: is not HTML: eof in tag'],
    [
      'a script',
      'footer',
      '<p>Hi</p>\n<script src="/x.js"></script>',
      '2: <script> cannot be used here: the content security policy of the hub lets no script run; remove it',
    ],
    ['a handler', 'footer', '<p\nonclick="x()">Hi</p>', '2: onclick is a script'],
    [
      'a style',
      'footer',
      '<p style="color: red">Hi</p>',
      '1: style is of no use: the content security policy of the hub ignores it; put the rules into Hub.custom_css',
    ],
    [
      'an id, which the page may have too',
      'footer',
      '<p id="content">Hi</p>',
      '1: <p> cannot have id here',
    ],
    [
      'a link that is a script',
      'footer',
      '<a href="java&#115;cript:x()">Hi</a>',
      '1: "javascript:x()" is no link',
    ],
    [
      'a link that a value begins',
      'footer',
      '<a href="{{user_name}}">Hi</a>',
      '1: an address cannot begin with {{user_name}}',
    ],
    [
      'an image of another host',
      'footer',
      '<img alt="" src="https://example.org/x.png">',
      "1: browsers load images of the hub's pages from the hub alone",
    ],
    ['an image without a text', 'footer', '<img src="/x.png">', '1: <img> needs an alt'],
    [
      'a whole page',
      'footer',
      '<!doctype html>\n<html><body>Hi</body></html>',
      '1: this is a part of a page: leave <!doctype> out',
    ],
    ['a login page without the form', 'login', '<p>Welcome</p>', '1: {{login_form}} is missing'],
    [
      'one with two',
      'login',
      '{{login_form}}{{login_form}}',
      '1: {{login_form}} stands more than once',
    ],
    [
      'one with the form in an attribute',
      'login',
      '<p title="{{login_form}}"></p>',
      '1: {{login_form}} stands between elements, not in an attribute',
    ],
  ])('with %s says where and how to fix it', async ([, name, text, expected]) => {
    expect((await problemsOf(name, text)).join('\n')).toContain(expected);
  });
});
