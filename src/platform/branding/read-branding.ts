import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { didYouMean } from '../config/suggestion.ts';
import type { ConfigProblem } from '../errors.ts';
import { readBoundedFile, readText, reasonOf } from '../files/read-file.ts';
import { canonicalTag } from '../texts/languages.ts';
import type { Branding, CustomFile, CustomFileName, SiteBranding } from './branding.ts';
import { type Image, type ImageType, readImage } from './image.ts';
import { findStylesheetProblems } from './stylesheet.ts';
import {
  compileTemplate,
  type Template,
  type TemplateName,
  templatePlaceholders,
} from './template.ts';

const maxImageBytes = 1024 * 1024;
const maxStylesheetBytes = 256 * 1024;
const maxTemplateBytes = 64 * 1024;
/** Of the same file; the rest is usually a consequence. */
const maxProblems = 5;

const logoTypes: readonly ImageType[] = ['svg', 'png', 'jpg', 'webp'];
const faviconTypes: readonly ImageType[] = ['svg', 'png', 'ico'];
const templateNames = Object.keys(templatePlaceholders) as TemplateName[];

type BrandingConfig = Pick<Config, 'directory'> & {
  readonly Hub: Pick<
    Config['Hub'],
    | 'title'
    | 'accent_color'
    | 'logo'
    | 'logo_dark'
    | 'favicon'
    | 'login_message'
    | 'footer_text'
    | 'footer_links'
    | 'terms_url'
    | 'custom_css'
    | 'templates_dir'
  >;
};

/** Reads the files of the branding. What is of no use is left out, so that the built-in stands, and told of. */
export async function readBranding({ Hub, directory }: BrandingConfig): Promise<{
  readonly own: SiteBranding;
  readonly warnings: readonly ConfigProblem[];
}> {
  const warnings: ConfigProblem[] = [];
  const files: CustomFile[] = [];
  const warn = (setting: string, message: string) =>
    void warnings.push({ path: `Hub.${setting}`, message });

  async function readImageFile(
    setting: 'logo' | 'logo_dark' | 'favicon',
    allowed: readonly ImageType[],
    instead: string,
  ): Promise<(Image & { readonly file: CustomFileName }) | undefined> {
    const configured = Hub[setting];
    if (configured === undefined) return undefined;
    const path = resolve(directory, configured);
    const read = await readBoundedFile(path, maxImageBytes);
    const image = read.problem ?? (await readImage(read.body, allowed));
    if (read.problem !== undefined || typeof image === 'string') {
      warn(setting, `${path} ${String(image)}; ${instead}`);
      return undefined;
    }
    const name = nameOf(setting.replace('_', '-'), image.type, read.body);
    files.push({ name, body: read.body, contentType: image.contentType });
    return { ...image, file: name };
  }

  async function readStylesheet(): Promise<CustomFileName | undefined> {
    const { custom_css: configured } = Hub;
    if (configured === undefined) return undefined;
    const path = resolve(directory, configured);
    const read = await readBoundedFile(path, maxStylesheetBytes);
    const instead = 'it is left out';
    if (read.problem !== undefined) {
      warn('custom_css', `${path} ${read.problem}; ${instead}`);
      return undefined;
    }
    const text = readText(read.body);
    if (text === undefined || text.trimStart().startsWith('<')) {
      warn('custom_css', `${path} is not a stylesheet in UTF-8; ${instead}`);
      return undefined;
    }
    for (const { line, message } of findStylesheetProblems(text).slice(0, maxProblems))
      warn('custom_css', `${path}, line ${line}: ${message}`);
    const name = nameOf('style', 'css', read.body);
    files.push({ name, body: read.body, contentType: 'text/css; charset=utf-8' });
    return name;
  }

  async function readTemplates(): Promise<Pick<Branding, 'templates' | 'templatesIn'>> {
    const { templates_dir: configured } = Hub;
    const templates: Partial<Record<TemplateName, Template>> = {};
    const templatesIn: Record<string, typeof templates> = {};
    const found = { templates, templatesIn };
    if (configured === undefined) return found;
    const folder = resolve(directory, configured);
    let names: string[];
    try {
      names = await readdir(folder);
    } catch (error) {
      warn(
        'templates_dir',
        `${folder} cannot be read: ${reasonOf(error)}; the built-in parts are used`,
      );
      return found;
    }
    for (const fileName of names.filter((each) => each.endsWith('.html')).toSorted()) {
      const [wanted = '', ...rest] = fileName.slice(0, -'.html'.length).split('.');
      const name = templateNames.find((each) => each === wanted);
      if (name === undefined) {
        const list = templateNames.map((each) => `${each}.html`).join(', ');
        const hint = didYouMean(wanted, templateNames);
        warn(
          'templates_dir',
          `${join(folder, fileName)} is no part of a page; there are ${list}${hint}`,
        );
        continue;
      }
      const tag = rest.length === 0 ? undefined : canonicalTag(rest.join('.'));
      if (rest.length > 0 && tag === undefined) {
        warn(
          'templates_dir',
          `${join(folder, fileName)} is for no language: call it ${name}.html, or ${name}.de.html for German`,
        );
        continue;
      }
      const template = await readTemplate(name, join(folder, fileName), tag);
      if (template === undefined) continue;
      if (tag === undefined) templates[name] = template;
      else templatesIn[tag] = { ...templatesIn[tag], [name]: template };
    }
    return found;
  }

  async function readTemplate(
    name: TemplateName,
    path: string,
    tag: string | undefined,
  ): Promise<Template | undefined> {
    const read = await readBoundedFile(path, maxTemplateBytes);
    const text = read.problem === undefined ? readText(read.body) : undefined;
    const other = tag === undefined ? 'the built-in part' : 'the part for all languages';
    const instead = `${other} is used until it is fixed`;
    if (text === undefined) {
      warn('templates_dir', `${path} ${read.problem ?? 'is not text in UTF-8'}; ${instead}`);
      return undefined;
    }
    const { template, problems } = await compileTemplate(name, text);
    for (const { line, message } of problems.slice(0, maxProblems))
      warn('templates_dir', `${path}, line ${line}: ${message}; ${instead}`);
    return problems.length === 0 ? template : undefined;
  }

  const logo = await readImageFile('logo', logoTypes, 'the built-in mark is shown');
  const dark = await readImageFile('logo_dark', logoTypes, 'dark mode shows Hub.logo');
  if (Hub.logo_dark !== undefined && Hub.logo === undefined)
    warn('logo_dark', 'is only shown with Hub.logo; set that too');
  const favicon = await readImageFile('favicon', faviconTypes, 'the built-in icon is used');
  const branding: Branding = {
    title: Hub.title,
    accentColour: Hub.accent_color,
    logo: logo && {
      file: logo.file,
      darkFile: dark?.file,
      width: logo.width,
      height: logo.height,
    },
    favicon: favicon?.file,
    stylesheet: await readStylesheet(),
    loginMessage: Hub.login_message,
    footerText: Hub.footer_text,
    footerLinks: Hub.footer_links,
    termsUrl: Hub.terms_url,
    ...(await readTemplates()),
  };
  return {
    own: { branding, files, digest: hash('sha256', JSON.stringify(branding), 'base64url') },
    warnings,
  };
}

function nameOf(kind: string, extension: string, body: Buffer): CustomFileName {
  return `own-${kind}.${hash('sha256', body, 'hex').slice(0, 12)}.${extension}`;
}
