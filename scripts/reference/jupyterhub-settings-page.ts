import { oldSections, oldSettings } from '../../src/platform/config/jupyterhub-settings.ts';
import { cell, code, generatedNote } from './markdown.ts';

/** The reference page of what settings of JupyterHub are called here. */
export function jupyterHubSettingsPage(): string {
  const settings = Object.entries(oldSettings).map(([path, setting]) => {
    const said = 'here' in setting ? code(setting.here) : cell(setting.instead);
    return `| ${code(`c.${path}`)} | ${said} |`;
  });
  const sections = Object.entries(oldSections).map(
    ([old, section]) => `| ${code(`c.${old}`)} | ${code(section)} |`,
  );
  return `${generatedNote}

# JupyterHub's settings here

What a \`jupyterhub_config.py\` says is written as a \`hub.config.json\` by
[\`hub import jupyterhub --from\`](../how-to/from-jupyterhub.md), and \`hub check\` knows the old names. Settings that are not
listed have the same name in the same section, or are not there.

## Sections

| JupyterHub | here |
|---|---|
${sections.join('\n')}

## Settings

| JupyterHub | here |
|---|---|
${settings.join('\n')}
`;
}
