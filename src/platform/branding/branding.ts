import type { CustomLanguages } from '../texts/languages.ts';
import type { LocalizedText } from '../texts/text.ts';
import type { Template, TemplateName } from './template.ts';

/** Name of one of the operator's files below the path of assets, such as `own-logo.0123456789ab.svg`. */
export type CustomFileName = `own-${string}`;

/** One of the operator's files, read and checked. */
export interface CustomFile {
  readonly name: CustomFileName;
  readonly body: Buffer;
  readonly contentType: string;
}

/**
 * What the operator gave pages of a look: names of files, texts and parts of pages. It can be written as JSON: a
 * gateway gets it from its hub, where the files are.
 */
export interface Branding {
  /** What the hub is called on every page. */
  readonly title: LocalizedText;
  /** Of primary buttons and links, as `#2457d6`; the built-in one when left out. */
  readonly accentColour?: string | undefined;
  readonly logo?: Logo | undefined;
  readonly favicon?: CustomFileName | undefined;
  /** Loaded after the built-in stylesheet. */
  readonly stylesheet?: CustomFileName | undefined;
  /** Plain text. */
  readonly loginMessage?: LocalizedText | undefined;
  /** Plain text. */
  readonly footerText?: LocalizedText | undefined;
  readonly footerLinks: readonly FooterLink[];
  readonly termsUrl?: LocalizedText | undefined;
  readonly templates: Templates;
  /** Those for the readers of a language, by its BCP 47 tag; they come before those for all. */
  readonly templatesIn: Readonly<Record<string, Templates>>;
}

export type Templates = Readonly<Partial<Record<TemplateName, Template>>>;

export interface Logo {
  readonly file: CustomFileName;
  readonly darkFile?: CustomFileName | undefined;
  /** Size of the image, in its own pixels. */
  readonly width: number;
  readonly height: number;
}

export interface FooterLink {
  readonly title: LocalizedText;
  readonly url: LocalizedText;
}

/** Branding with the files it names. */
export interface SiteBranding {
  readonly branding: Branding;
  readonly files: readonly CustomFile[];
  /** The same for two hubs whose files say the same, wherever they are. */
  readonly digest: string;
}

/** What a gateway is told: its hub has the files, of the languages too. */
export interface PublishedBranding extends Branding {
  readonly languages: CustomLanguages;
}

/** The branding at this moment: a reload puts another one in its place. */
export interface CurrentBranding {
  readonly current: Branding;
}

/** That of a hub whose operator gave it none. */
export const builtInBranding: Branding = {
  title: 'Hub',
  footerLinks: [],
  templates: {},
  templatesIn: {},
};
