import type { Context } from 'koa';
import type { Caller } from '../../../identity/rbac/access-check.ts';
import type { Membership } from '../../../identity/rbac/membership.ts';
import type { Login, LoginSessions } from '../../../identity/sessions/login-sessions.ts';
import type { OperationDeclaration } from '../../../operations/operation.ts';
import type { BodyOf, AnswerOf as ModelOf, OperationId } from '../../../operations/operations.ts';
import type { AuditAction } from '../../../platform/audit/actions.ts';
import type { FieldProblem } from '../../../platform/errors.ts';
import type { Language } from '../../../platform/texts/language.ts';
import type { Phrase, Text } from '../../../platform/texts/text.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import type { Html } from '../html.ts';
import type { PageContext } from '../page-context.ts';
import type { Next } from './next.ts';

/** A page or form, and the operation that it performs. */
export interface Entrance {
  readonly kind: 'page' | 'form';
  /** Below `/hub`; parameters stand in it as `{name}`. */
  readonly path: string;
  readonly operation: OperationDeclaration;
  /** Scope that it needs as well. */
  readonly areaScope: string | undefined;
  /** What is sent to a form that performs one of several operations, to choose this one. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** Who looks at a page. */
export interface Visitor {
  readonly login: Login;
  readonly caller: Caller;
  readonly membership: Membership;
}

/** Why a form is shown again. */
export interface Failure {
  /** Of the form, as it was bound. */
  readonly path: string;
  /** What was sent. */
  readonly sent: URLSearchParams;
  /** What is wrong with it, unless it was not finished. */
  readonly problem?: Phrase;
  /** The field that it is about, where the operation says so. */
  readonly field?: FieldProblem | undefined;
  readonly status?: number;
  /** Whether somebody has changed meanwhile what it is about; who, as far as the visitor may know. */
  readonly changed?: { readonly by: Html | undefined };
}

/** Of an operation, by their names. */
export type Parameters = Readonly<Record<string, string>>;
export type { ModelOf };
/** What a page is drawn from. */
export interface Shown<Model> {
  readonly layout: FormLayoutProps;
  /** What the operation of the page answered. */
  readonly model: Model;
  readonly params: Parameters;
  /** Of the query of the address, what the operation or the page declares. */
  readonly search: URLSearchParams;
  readonly language: Language;
  readonly visitor: Visitor;
  /** Whether the visitor may perform an operation; with parameters beside those of the page. */
  readonly may: (id: OperationId, params?: Parameters) => boolean;
  /** For a form that is shown again. */
  readonly failure: Failure | undefined;
  /** For what waits in the session of the browser. */
  readonly ctx: Context;
}

/** A page, or where the browser is sent in its place; undefined where the page has answered by itself. */
export type Answer = Html | { readonly redirect: string } | undefined;

export interface PageOptions {
  /**
   * Parameters of the address that the page reads beside those of its operation; `any` where an app or a plugin gives
   * them their names. The page says of any other that it is passed over.
   */
  readonly query?: readonly string[] | 'any';
  /** What the operation is asked where the page is shown again, by what was sent. */
  readonly againQuery?: (sent: URLSearchParams) => Parameters;
  /** Parameters of the operation that do not stand in the path. */
  readonly params?: (visitor: Visitor, ctx: Context) => Parameters | Promise<Parameters>;
}

/** Shows a page again with what was typed into a form of it. */
export type ShowAgain = (ctx: Context, visitor: Visitor, failure: Failure) => Promise<void>;

export interface Changes {
  readonly actions: readonly AuditAction[];
  readonly target?: string | undefined;
}

interface FormOptions<Id extends OperationId> {
  /** Parameters of the operation that stand in the form and not in the path. */
  readonly params?: (sent: URLSearchParams, visitor: Visitor) => Parameters;
  /** What the operation is asked with. Throws `bad_request` for what was typed and is no value. */
  readonly body?: (
    sent: URLSearchParams,
    params: Parameters,
    ctx: Context,
  ) => BodyOf<Id> | Promise<BodyOf<Id>>;
  readonly query?: (sent: URLSearchParams) => Readonly<Record<string, string>>;
  /** What the next page says, and its address; or a page that is shown this once. */
  readonly done: (performed: Performed<Id>) => Next | Html | Promise<Next | Html>;
  /** The actions that make another version of what it changes, and its name, to say who did. */
  readonly changes?: (params: Parameters) => Changes;
  /** What is said in place of 404 where it is gone already, and was only to be ended. */
  readonly isGone?: (sent: URLSearchParams, params: Parameters) => Next;
  /** Throws `bad_request` where a question of the form was not answered as it must be. */
  readonly check?: (sent: URLSearchParams, params: Parameters) => void;
  /** Whether a button asks for no more than the page again, with what was typed so far. */
  readonly isUnfinished?: (sent: URLSearchParams) => boolean;
  /** The page on which mistakes are shown; without it, they are shown as an error. */
  readonly again?: ShowAgain;
  /** Where the browser goes with a mistake in a form that stands on several pages. */
  readonly mistaken?: (problem: Text, sent: URLSearchParams) => Next;
}

interface Performed<Id extends OperationId> {
  readonly params: Parameters;
  readonly sent: URLSearchParams;
  /** What the operation answered. */
  readonly result: ModelOf<Id>;
  readonly ctx: Context;
  readonly visitor: Visitor;
}

/** A form that says in one of its fields which operation is performed. */
interface Choice {
  readonly field: string;
  /** By what stands in the field. */
  readonly operations: Readonly<Record<string, OperationId>>;
  readonly logins: Pick<LoginSessions, 'find'>;
  readonly act: (chosen: Chosen) => Promise<Next>;
}

/** What was chosen in a form. */
export interface Chosen {
  /** What stood in the field. */
  readonly choice: string;
  readonly sent: URLSearchParams;
  readonly visitor: Visitor;
  readonly language: Language;
  /** What a view, or another operation that changes nothing, answers the visitor. */
  readonly read: <Id extends OperationId>(
    id: Id,
    asked: {
      readonly params?: Parameters;
      readonly query?: Parameters;
      readonly body?: BodyOf<Id>;
    },
  ) => Promise<ModelOf<Id>>;
  /**
   * Performs the chosen operation, also long after the request: with the rights that the visitor has by then, and no
   * more once the login has ended.
   */
  readonly perform: (asked: {
    readonly params: Parameters;
    readonly body?: unknown;
  }) => Promise<unknown>;
}

/** Binds addresses of pages to operations, which alone decide who may and what is done. */
export interface BoundPages {
  readonly pages: PageContext;
  /** A page that shows what an operation reads; returns how to show it again. */
  page<Id extends OperationId>(
    path: string,
    id: Id,
    show: (shown: Shown<ModelOf<Id>>) => Answer | Promise<Answer>,
    options?: PageOptions,
  ): ShowAgain;
  /** A form that performs an operation. */
  form<Id extends OperationId>(path: string, id: Id, options: FormOptions<Id>): void;
  /** A form that performs one of several operations, once or for many. */
  choice(path: string, options: Choice): void;
}
