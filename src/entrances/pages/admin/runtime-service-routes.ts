import type { z } from 'zod';
import { issueProblem } from '../../../platform/config/common-schema.ts';
import { fieldError } from '../../../platform/http/field-error.ts';
import { text } from '../../../platform/texts/text.ts';
import {
  type RuntimeService,
  serviceDefinition,
} from '../../../workloads/services/runtime-service.ts';
import type { BoundPages, Changes } from '../forms/binding.ts';
import { bindDeletion } from '../forms/deletion.ts';
import {
  adminServiceFormPage,
  type LaunchForm,
  newServicePage,
  type ServiceForm,
  serviceFacts,
} from './service-form-page.ts';
import { headersFormOf, headersOf, readHeaders, readPairs } from './service-headers.ts';
import { limitsFormOf, limitsOf, readLimits } from './service-limits.ts';

/** `/hub/admin/new-service` and `/hub/admin/services/<name>/…`: services that are added at run time. */
export function adminRuntimeServiceRoutes(bound: BoundPages): void {
  const { page, form } = bound;
  const { urls } = bound.pages;

  const showNew = page('/admin/new-service', 'viewNewService', ({ layout, model, failure }) => {
    const launch = model.allowsManaged ? emptyLaunch : undefined;
    const empty = { ...emptyForm, launch };
    return adminServiceFormPage({
      layout,
      form: failure === undefined ? empty : readForm(failure.sent, nameIn(failure.sent)),
      problem: failure?.problem,
    });
  });

  form('/admin/new-service', 'createService', {
    params: (sent) => ({ service: nameIn(sent) }),
    body: (sent, { service = '' }) => {
      const { title, ...members } = membersOf(readForm(sent, service));
      return checked({ ...members, ...(title !== '' && { info: { title } }) });
    },
    done({ params: { service: name = '' }, sent, result: { api_token: token } }) {
      const to = urls.adminService(name);
      if (token === undefined) return { to, say: text`${name} is added, and starting.` };
      const { access, oauth_redirect_uris: uris } = membersOf(readForm(sent, name));
      // The gateway checks its visitors, or nobody does: it has no use for a token.
      if (access !== 'service' && uris === undefined) return { to, say: text`${name} is added.` };
      return { show: (layout) => newServicePage({ layout, name, token }) };
    },
    again: showNew,
  });

  const showEdit = page(
    '/admin/services/{service}/edit',
    'viewServiceForm',
    ({ layout, model, failure }) => {
      const now = formOf(model);
      return adminServiceFormPage({
        layout,
        form: failure === undefined ? now : readForm(failure.sent, now.name),
        version: model.version,
        problem: failure?.problem,
        changed: failure?.changed && { by: failure.changed.by, now: serviceFacts(now) },
      });
    },
  );

  form('/admin/services/{service}/edit', 'editService', {
    body: (sent, { service = '' }) => {
      const typed = readForm(sent, service);
      if (typed.launch?.command === '')
        throw fieldError('command', text`a managed service needs one`);
      const { title, ...members } = membersOf(typed);
      return {
        title,
        changes: {
          url: null,
          limits: null,
          headers: null,
          oauth_redirect_uri: null,
          oauth_redirect_uris: null,
          ...emptiedBy(typed.launch),
          ...checked(members),
        },
      };
    },
    done: ({ params: { service: name = '' } }) => ({
      to: urls.adminService(name),
      say: text`${name} is changed.`,
    }),
    changes: serviceChanges,
    again: showEdit,
  });

  bindDeletion(bound, '/admin/services/{service}/delete', {
    view: 'viewServiceDeletion',
    operation: 'deleteService',
    question: ({ definition: { name } }) => ({
      title: text`Delete the service ${name}?`,
      consequences: [
        text`Its token, its roles and what users allowed it end at once, and its pages are gone.`,
      ],
      label: text`Delete service`,
      action: urls.adminService(name, 'delete'),
      cancelUrl: urls.adminService(name),
    }),
    changes: serviceChanges,
    versioned: (service) => ({ version: service.version, now: serviceFacts(formOf(service)) }),
    done: ({ service: name = '' }) => ({ to: urls.adminServices, say: text`${name} is deleted.` }),
  });
}

/** What makes another version of a service. */
function serviceChanges({ service }: Readonly<Record<string, string>>): Changes {
  return { actions: ['service.create', 'service.change'], target: service };
}

const nameIn = (sent: URLSearchParams) => (sent.get('name') ?? '').trim();

const emptyForm = {
  name: '',
  title: '',
  url: '',
  access: 'gateway',
  isDisplayed: true,
  redirectUris: '',
  limits: limitsFormOf(undefined),
  headers: headersFormOf(undefined),
};

const emptyLaunch: LaunchForm = {
  command: '',
  environment: '',
  isEnvironmentCleared: false,
  cwd: '',
  user: '',
};

function formOf({ definition }: RuntimeService): ServiceForm {
  const { name, info, url = '', access, display, command, cwd = '', user = '' } = definition;
  const { oauth_redirect_uri, oauth_redirect_uris } = definition;
  const title = info['title'];
  return {
    name,
    title: typeof title === 'string' ? title : '',
    url,
    access,
    isDisplayed: display,
    redirectUris: [oauth_redirect_uri ?? [], oauth_redirect_uris].flat().join('\n'),
    limits: limitsFormOf(definition.limits),
    headers: headersFormOf(definition.headers),
    launch: command && { ...emptyLaunch, command: command.map(quoteWord).join(' '), cwd, user },
  };
}

/** A word of a command line as `toArguments` reads it: parts in different quotes are one word. */
function quoteWord(word: string): string {
  if (word !== '' && !/[\s"']/.test(word)) return word;
  const parts = word.split('"').map((part) => `"${part}"`);
  return parts.join(`'"'`);
}

function readForm(form: URLSearchParams, name: string): ServiceForm {
  const typed = (field: string) => (form.get(field) ?? '').trim();
  return {
    name,
    title: typed('title'),
    url: typed('url'),
    access: typed('access'),
    isDisplayed: form.has('display'),
    redirectUris: typed('oauth_redirect_uris'),
    limits: readLimits(form),
    headers: readHeaders(form),
    launch: form.has('command')
      ? {
          command: typed('command'),
          environment: form.get('environment') ?? '',
          isEnvironmentCleared: form.has('clear_environment'),
          cwd: typed('cwd'),
          user: typed('user'),
        }
      : undefined,
  };
}

/** What a managed service no longer has where its form leaves it empty. */
function emptiedBy(launch: LaunchForm | undefined) {
  if (launch === undefined) return {};
  return { cwd: null, user: null, ...(launch.isEnvironmentCleared && { environment: null }) };
}

function membersOf(form: ServiceForm) {
  const { title, url, access, isDisplayed, redirectUris, launch } = form;
  const limits = limitsOf(form.limits);
  const headers = headersOf(form.headers);
  const uris = redirectUris.split(/\s+/).filter((uri) => uri !== '');
  return {
    title,
    ...(url !== '' && { url }),
    // Without an address there are no visitors, whatever is chosen for them.
    access: url === '' ? 'service' : access,
    display: isDisplayed,
    ...(limits !== undefined && { limits }),
    ...(headers !== undefined && { headers }),
    ...(uris.length > 0 && { oauth_redirect_uris: uris }),
    ...(launch !== undefined && launchMembersOf(launch)),
  };
}

function launchMembersOf({ command, environment, cwd, user }: LaunchForm): Record<string, unknown> {
  const variables = readPairs(environment, /^\s*([^=\s]+)=(.*)$/, (line) =>
    fieldError('environment', text`line ${line} is not NAME=value`),
  );
  return {
    ...(command !== '' && { command }),
    ...(variables.length > 0 && { environment: Object.fromEntries(variables) }),
    ...(cwd !== '' && { cwd }),
    ...(user !== '' && { user }),
  };
}

/** Throws `bad_request` that names the field of what is wrong. */
function checked(members: Record<string, unknown>): z.input<typeof serviceDefinition> {
  const parsed = serviceDefinition.safeParse(members);
  if (parsed.success) return members as z.input<typeof serviceDefinition>;
  const [issue] = parsed.error.issues;
  throw fieldError(issue?.path.join('.') ?? '', issueProblem(issue));
}
