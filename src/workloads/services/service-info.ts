import type { ServiceConfig } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { serviceTitle } from '../../platform/protocol/service-title.ts';
import { english, type Language } from '../../platform/texts/language.ts';
import {
  localizedPhrase,
  type Phrase,
  phraseIn,
  readLocalizedText,
} from '../../platform/texts/text.ts';

/** What the free data of a service (`info`) tells visitors of it; what is not as it should be is left out. */
export interface ServiceInfo {
  /** The name of the service where it has no other. */
  readonly title: string;
  readonly description: string | undefined;
  /** Under which heading it stands. */
  readonly group: string | undefined;
  /** An emoji or a few letters, or the address of an image. */
  readonly icon: string | undefined;
  /** Who looks after it. */
  readonly contact: string | undefined;
}

export function serviceInfo(
  service: { readonly name: string; readonly info: Readonly<Record<string, unknown>> },
  language: Language = english,
): ServiceInfo {
  const text = (key: 'description' | 'group' | 'icon' | 'contact'): string | undefined => {
    const phrase = serviceText(service, key);
    return phrase && phraseIn(phrase, language);
  };
  const { icon } = service.info;
  return {
    title: phraseIn(serviceTitle(service), language),
    description: text('description'),
    group: text('group'),
    icon: typeof icon === 'string' ? text('icon') : undefined,
    contact: text('contact'),
  };
}

/** One of the texts of a service; undefined where it has none. */
export function serviceText(
  { info }: { readonly info: Readonly<Record<string, unknown>> },
  key: string,
): Phrase | undefined {
  const own = readLocalizedText(info[key]);
  return own && localizedPhrase(own);
}

export type ServiceIcon =
  | { readonly kind: 'image'; readonly url: string }
  /** An emoji or a few letters. */
  | { readonly kind: 'text'; readonly text: string };

const maxIconLength = 3;
let segmenter: Intl.Segmenter | undefined;

/** Made on first use: the data of languages stays in memory. */
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter;
}

/**
 * What pages show as an icon; undefined for what they cannot. `ownPathOf` gives the path of an address on the hub's own
 * origin, from which alone images are shown.
 */
export function readIcon(
  icon: string | undefined,
  ownPathOf: (address: string) => string | undefined,
): ServiceIcon | undefined {
  if (icon === undefined) return undefined;
  if (/^(?:\/|https?:)/i.test(icon)) {
    const path = ownPathOf(icon);
    return path === undefined ? undefined : { kind: 'image', url: path };
  }
  if (icon.length <= maxIconLength) return { kind: 'text', text: icon };
  // One letter may be a megabyte of marks.
  if (icon.length > 50 || [...graphemes().segment(icon)].length > maxIconLength) return undefined;
  return { kind: 'text', text: icon };
}

/** Points at icons in `Hub.services` that pages cannot show. */
export function iconWarnings(
  services: readonly Pick<ServiceConfig, 'name' | 'info'>[],
  ownPathOf: (address: string) => string | undefined,
): ConfigProblem[] {
  return services.flatMap((service, index) => {
    const isShown = readIcon(serviceInfo(service).icon, ownPathOf) !== undefined;
    if (service.info['icon'] === undefined || isShown) return [];
    const path = `Hub.services[${index}].info.icon`;
    const message = `is not shown: give an emoji, up to three letters, or the path of an image on the origin of the hub (service "${service.name}")`;
    return [{ path, message }];
  });
}
