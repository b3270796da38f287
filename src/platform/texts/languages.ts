import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import Negotiator from 'negotiator';
import { programFolder } from '../files/program-folder.ts';
import { readBoundedFile, readText, reasonOf } from '../files/read-file.ts';
import { type CatalogueProblem, readCatalogue } from './catalogue.ts';
import { Language } from './language.ts';

/** Texts in a language that comes with the hub, one file for each part of it. */
const germanDirectory = join(programFolder, 'src', 'platform', 'texts', 'languages', 'de');

/** Far more than all texts of the hub. */
const maxFileBytes = 1024 * 1024;

export interface LanguageSettings {
  /** Folder of the operator's catalogues, `<tag>.json` each. */
  readonly directory?: string | undefined;
  /** BCP 47 tag of the language of those who have none that there is. */
  readonly defaultLanguage?: string | undefined;
}

/** What the operator gave; it can be written as JSON, for processes that do not have the files. */
export interface CustomLanguages {
  readonly defaultLanguage?: string | undefined;
  /** Translations by the tag of their language, and there by key. */
  readonly catalogues: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A problem of a file of the operator. */
export interface LanguageProblem extends CatalogueProblem {
  readonly file: string;
}

/** The languages in which pages are shown. */
export interface Languages {
  /** The default one first, English where there is no such language. */
  readonly all: readonly Language[];
  /** What of the operator's files was left out. */
  readonly problems: readonly LanguageProblem[];
  readonly own: CustomLanguages;
  /** The English source of every text, by its key. */
  readonly keys: readonly string[];
  find(tag: string): Language | undefined;
  /** The best of them for an `Accept-Language` header (RFC 9110 §12.5.4). */
  negotiate(acceptLanguage: string | undefined): Language;
  /** Reads the files of the operator again. */
  reload(settings: LanguageSettings): Promise<void>;
  /** Takes over what another process read. */
  follow(own: CustomLanguages): void;
}

/** Reads the texts in all languages. What is wrong in a file of the operator is left out and listed. */
export async function loadLanguages(settings: LanguageSettings = {}): Promise<Languages> {
  shippedGerman ??= readGerman();
  const german = await shippedGerman;
  let current = await readAll(german, settings);
  let followed: string | undefined;

  return {
    get all() {
      return current.all;
    },
    get problems() {
      return current.problems;
    },
    get own() {
      return current.own;
    },
    get keys() {
      return [...german.keys()].sort();
    },
    find: (tag) => current.all.find((language) => language.tag === tag),
    negotiate(acceptLanguage) {
      const offered = current.all.map(({ tag }) => tag);
      const best = new Negotiator({ headers: { 'accept-language': acceptLanguage } }).language(
        offered,
      );
      const found = current.all.find(({ tag }) => tag === best) ?? current.all[0];
      if (found === undefined) throw new TypeError('there is no language');
      return found;
    },
    async reload(changed) {
      current = await readAll(german, changed);
    },
    follow(own) {
      const reported = JSON.stringify(own);
      // What was compiled for the same texts is kept.
      if (reported === followed) return;
      followed = reported;
      current = { ...languagesOf(german, own), problems: [] };
    },
  };
}

/** It is part of the program: read once for all hubs of a process. */
let shippedGerman: Promise<ReadonlyMap<string, string>> | undefined;

async function readGerman(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(germanDirectory)).filter((name) => name.endsWith('.json'));
  const files = await Promise.all(
    names.map((name) => readFile(join(germanDirectory, name), 'utf8')),
  );
  return new Map(files.flatMap((json) => Object.entries<string>(JSON.parse(json))));
}

interface LanguageSet {
  readonly all: readonly Language[];
  readonly own: CustomLanguages;
  readonly problems: readonly LanguageProblem[];
}

async function readAll(
  german: ReadonlyMap<string, string>,
  { directory, defaultLanguage }: LanguageSettings,
): Promise<LanguageSet> {
  const { catalogues, problems } = await readOperatorFiles(directory, (key) => german.has(key));
  const own = {
    defaultLanguage,
    catalogues: Object.fromEntries(
      [...catalogues].map(([tag, translations]) => [tag, Object.fromEntries(translations)]),
    ),
  };
  return { ...languagesOf(german, own), problems };
}

function languagesOf(
  german: ReadonlyMap<string, string>,
  own: CustomLanguages,
): Pick<LanguageSet, 'all' | 'own'> {
  const { defaultLanguage = 'en' } = own;
  const languages = new Map<string, Language>();
  const shipped = new Map<string, ReadonlyMap<string, string>>([
    ['en', new Map()],
    ['de', german],
  ]);
  for (const [tag, translations] of shipped) {
    const changes = Object.entries(own.catalogues[tag] ?? {});
    const changed = changes.length === 0 ? translations : new Map([...translations, ...changes]);
    languages.set(tag, new Language(tag, changed, undefined, defaultLanguage));
  }
  for (const [tag, catalogue] of Object.entries(own.catalogues)) {
    if (languages.has(tag)) continue;
    const translations = new Map(Object.entries(catalogue));
    const base = languages.get(new Intl.Locale(tag).language) ?? languages.get('en');
    languages.set(tag, new Language(tag, translations, base, defaultLanguage));
  }
  const first = languages.get(defaultLanguage);
  const others = [...languages.values()].filter((language) => language !== first);
  return { all: first === undefined ? others : [first, ...others], own };
}

async function readOperatorFiles(
  directory: string | undefined,
  isKnown: (key: string) => boolean,
): Promise<{
  readonly catalogues: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly problems: readonly LanguageProblem[];
}> {
  const catalogues = new Map<string, ReadonlyMap<string, string>>();
  if (directory === undefined) return { catalogues, problems: [] };
  const problems: LanguageProblem[] = [];
  const names = await readdir(directory).catch((error: unknown) => {
    problems.push({ file: directory, message: `cannot be read: ${reasonOf(error)}` });
    return [];
  });
  for (const name of names.filter((each) => each.endsWith('.json')).sort()) {
    const file = join(directory, name);
    const tag = canonicalTag(basename(name, '.json'));
    if (tag === undefined) {
      const message = 'must be named for a language, such as fr.json or pt-BR.json';
      problems.push({ file, message });
      continue;
    }
    const { translations, problems: found } = await readFileOf(file, isKnown);
    if (translations.size > 0) catalogues.set(tag, translations);
    problems.push(...found.map((problem) => ({ ...problem, file })));
  }
  return { catalogues, problems };
}

async function readFileOf(
  file: string,
  isKnown: (key: string) => boolean,
): Promise<ReturnType<typeof readCatalogue>> {
  const read = await readBoundedFile(file, maxFileBytes);
  const json = read.problem === undefined ? readText(read.body) : undefined;
  if (json !== undefined) return readCatalogue(json, isKnown);
  const message = read.problem ?? 'is not text in UTF-8';
  return { translations: new Map(), problems: [{ message }] };
}

/** The tag as BCP 47 writes it; undefined for what is none. */
export function canonicalTag(name: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(name)[0];
  } catch {
    return undefined;
  }
}
