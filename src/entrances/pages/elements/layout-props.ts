import type { AnnouncementLevel } from '../../../cluster/notices/notice-store.ts';
import type { CurrentBranding } from '../../../platform/branding/branding.ts';
import type { LocalizedText, Phrase, Text } from '../../../platform/texts/text.ts';
import type { AssetUrls } from '../assets/assets.ts';
import type { PageUrls } from '../page-urls.ts';
import type { Theme } from '../preferences.ts';
import type { MayOpen } from './admin-link.ts';

/** What every page knows beside its own content. */
export interface LayoutProps {
  readonly hubTitle: Phrase;
  readonly urls: PageUrls;
  readonly assets: AssetUrls;
  /** The operator's own look; the built-in one when left out. */
  readonly branding?: CurrentBranding | undefined;
  /** The moment to which relative times on the page refer. */
  readonly now: Date;
  /** What the browser chose; as its system has it when left out. */
  readonly theme?: Theme | undefined;
  /** In which the page can be shown. */
  readonly languages?: readonly OfferedLanguage[] | undefined;
  /** The address of the page, to come back to; left out for the answer to a form. */
  readonly address?: string | undefined;
  /** Which pages of the administration are open to the reader; all when left out. */
  readonly mayOpen?: MayOpen | undefined;
  /** Who is logged in; without it the page has no navigation. */
  readonly user?: PageUser | undefined;
  readonly csrfToken?: string | undefined;
  /** Shown on error pages. */
  readonly requestId?: string | undefined;
  /** What the operator tells all users. */
  readonly announcements?: readonly ShownAnnouncement[] | undefined;
  /** Outcome of what the person did before this page. */
  readonly notice?: PageNotice | undefined;
  /** What the address asks for and the page passes over. */
  readonly passedOver?: PassedOver | undefined;
}

export interface PassedOver {
  readonly names: readonly string[];
  /** Those that were most likely meant, and the address with them. */
  readonly meant: { readonly names: readonly string[]; readonly url: string } | undefined;
}

export interface OfferedLanguage {
  /** BCP 47. */
  readonly tag: string;
  /** What its speakers call it. */
  readonly name: string;
  readonly isCurrent: boolean;
}

export interface ShownAnnouncement {
  /** What the hub says itself, before the text. */
  readonly rule?: Text;
  /** Plain text of the operator; may be empty beside a rule. */
  readonly text: LocalizedText;
  readonly level: AnnouncementLevel;
  /** Whether the time in it runs. */
  readonly countsDown?: true;
}

/** A layout whose page holds a form. */
export interface FormLayoutProps extends LayoutProps {
  readonly csrfToken: string;
}

export interface PageUser {
  readonly name: string;
  readonly displayName?: string | undefined;
  /** Whether the navigation offers the administration. */
  readonly mayAdminister: boolean;
  /** The parts of the administration that the user may see; all when left out. */
  readonly adminTabs?: readonly AdminTab[] | undefined;
}

export type AdminTab =
  | 'overview'
  | 'users'
  | 'groups'
  | 'roles'
  | 'servers'
  | 'services'
  | 'usage'
  | 'instances'
  | 'lockouts'
  | 'keys'
  | 'announcements'
  | 'activity';

export interface PageNotice {
  readonly kind: 'good' | 'warn' | 'bad';
  readonly text: Phrase;
}
