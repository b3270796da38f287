import { basename } from 'node:path';
import { hubCommand } from '../../../platform/files/program-folder.ts';
import { type Text, text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

/** What the first administrator of a new hub does next. */
export interface FirstRunView {
  /** Path of the configuration file, when there is one. */
  readonly configFile: string | undefined;
  readonly isHttps: boolean;
}

const exampleFile = 'hub.config.example.json';

/** The next steps of a new hub, until they are dismissed. */
export function firstRunPanel(
  layout: FormLayoutProps,
  { configFile, isHttps }: FirstRunView,
): Html {
  const { urls } = layout;
  return html`<section class="panel block first-run" aria-labelledby="first-run-title">
<h2 id="first-run-title">${text`Your hub is running. Next steps`}</h2>
<ol>
<li><h3><a href="${urls.adminNewUsers}">${text`Invite people`}</a></h3><p>${text`Add users, and send each of them the link with which they choose a password.`}</p></li>
<li><h3>${text`Make the configuration yours`}</h3><p>${configStep(configFile)} ${text`${code(hubCommand('check'))} says what is wrong with it, and ${code(hubCommand('reload'))} makes the hub take it over.`}</p></li>
${!isHttps && html`<li><h3>${text`Put it behind TLS`}</h3><p>${text`Before others use it over a network: ${code('docs/how-to/run-behind-tls.md')} shows how, and ${code(hubCommand('doctor'))} checks it.`}</p></li>`}
</ol>
${actionForm(layout, { action: urls.dismissFirstRun, label: text`Dismiss`, style: 'small' })}
</section>`;
}

const code = (content: string): Html => html`<code>${content}</code>`;

function configStep(file: string | undefined): Text {
  if (file !== undefined && basename(file) !== exampleFile) {
    return text`Services, servers and ways to log in are set in ${code(file)}.`;
  }
  return text`Copy ${code(exampleFile)} to ${code('hub.config.json')}: services, servers and ways to log in are set there.`;
}
