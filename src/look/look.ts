import type { OwnLanguages } from '../texts/languages.ts';
import type { OwnText } from '../texts/own-text.ts';
import type { Template, TemplateName } from './template.ts';

/** Name of one of the operator's files below the path of assets, such as `own-logo.0123456789ab.svg`. */
export type OwnFileName = `own-${string}`;

/** One of the operator's files, read and checked. */
export interface OwnFile {
  readonly name: OwnFileName;
  readonly body: Buffer;
  readonly contentType: string;
}

/**
 * What the operator gave pages of a look: names of files, texts and parts of pages. It can be written as JSON: a
 * gateway gets it from its hub, where the files are.
 */
export interface Look {
  /** What the hub is called on every page. */
  readonly title: OwnText;
  /** Of primary buttons and links, as `#2457d6`; the built-in one when left out. */
  readonly accentColour?: string | undefined;
  readonly logo?: Logo | undefined;
  readonly favicon?: OwnFileName | undefined;
  /** Loaded after the built-in stylesheet. */
  readonly stylesheet?: OwnFileName | undefined;
  /** Plain text. */
  readonly loginMessage?: OwnText | undefined;
  /** Plain text. */
  readonly footerText?: OwnText | undefined;
  readonly footerLinks: readonly FooterLink[];
  readonly termsUrl?: OwnText | undefined;
  readonly templates: Templates;
  /** Those for the readers of a language, by its BCP 47 tag; they come before those for all. */
  readonly templatesIn: Readonly<Record<string, Templates>>;
}

export type Templates = Readonly<Partial<Record<TemplateName, Template>>>;

export interface Logo {
  readonly file: OwnFileName;
  readonly darkFile?: OwnFileName | undefined;
  /** Size of the image, in its own pixels. */
  readonly width: number;
  readonly height: number;
}

export interface FooterLink {
  readonly title: OwnText;
  readonly url: OwnText;
}

/** A look with the files it names. */
export interface OwnLook {
  readonly look: Look;
  readonly files: readonly OwnFile[];
  /** The same for two hubs whose files say the same, wherever they are. */
  readonly digest: string;
}

/** What a gateway is told: its hub has the files, of the languages too. */
export interface ToldLook extends Look {
  readonly languages: OwnLanguages;
}

/** The look at this moment: a reload puts another one in its place. */
export interface CurrentLook {
  readonly current: Look;
}

/** That of a hub whose operator gave it none. */
export const builtInLook: Look = { title: 'Hub', footerLinks: [], templates: {}, templatesIn: {} };
