import { isMetadataAddress } from '../../platform/addresses/host-address.ts';
import { issueProblem } from '../../platform/config/common-schema.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { type ServiceDefinition, serviceDefinition } from '../services/runtime-service.ts';
import { clientIdOf } from '../services/service.ts';
import { maxRuntimeServices } from '../services/service-administration.ts';
import { findServiceProblems } from '../services/validate-services.ts';
import type { OldService } from './old-hub.ts';
import type { ImportNote } from './plan-servers.ts';

/** A service that is to be one that was added at run time here too. */
export interface PlannedService {
  readonly name: string;
  readonly clientId: string;
  readonly definition: ServiceDefinition;
}

/** External ones alone. */
const facts = { maySwitchAccounts: false, userExists: () => false, isDirectory: () => false };

/** By their old ids; notes the others that the configuration does not have. */
export function planServices(
  old: readonly OldService[],
  {
    configured,
    scopesHere,
    left,
  }: {
    /** Names of the services of the configuration. */
    readonly configured: readonly string[];
    readonly scopesHere: (scopes: readonly string[], what: string) => readonly string[];
    readonly left: ImportNote[];
  },
): ReadonlyMap<string, PlannedService> {
  const planned = new Map<string, PlannedService>();
  for (const service of old) {
    if (configured.includes(service.name)) continue;
    const found = plan(service);
    if (typeof found !== 'string') {
      planned.set(service.id, found);
      continue;
    }
    left.push({
      what: `service ${service.name}, with its tokens and roles`,
      why: found,
      todo: 'add it to Hub.services and import again',
    });
  }
  return planned;

  /** Answers with why not, for one that cannot be. */
  function plan(service: OldService): PlannedService | string {
    const { name, url } = service;
    if (service.isOfConfig) return 'Hub.services does not have it';
    if (service.isManaged) return 'the JupyterHub runs its program';
    if (planned.size >= maxRuntimeServices) return `there are ${maxRuntimeServices} such services`;
    const namedRight = serviceSchema.shape.name.safeParse(name);
    const defined = serviceDefinition.safeParse(definitionOf(service));
    const [issue] = [namedRight, defined].flatMap(({ error }) => error?.issues ?? []);
    if (defined.data === undefined || issue !== undefined) {
      const where = issue?.path.join('.') || 'name';
      return `${where}: ${issueProblem(issue)}`;
    }
    if (url !== undefined && isMetadataAddress(new URL(url).hostname))
      return 'its address is one where clouds keep credentials';
    const services = [...planned.values()].map((each) => ({ ...each.definition, name: each.name }));
    const candidate = { ...defined.data, name };
    const [problem] = findServiceProblems(
      { services: [...services, candidate], directory: '/', hubUrls: [] },
      facts,
    );
    if (problem !== undefined) return `${problem.field} ${problem.message}`;
    const { oauth_client_allowed_scopes: scopes } = defined.data;
    const definition = {
      ...defined.data,
      oauth_client_allowed_scopes: [...scopesHere(scopes, `service ${name}`)],
    };
    return { name, clientId: clientIdOf(candidate), definition };
  }
}

/** As `Hub.services` has it, without what is so by default. */
function definitionOf(service: OldService): object {
  const { name, url, info, isDisplayed, skipsConsent, clientId, redirectUri } = service;
  const isUsualUri = redirectUri?.endsWith(`/services/${name}/oauth_callback`) === true;
  return {
    ...(url !== undefined && { url }),
    ...(typeof info === 'object' && info !== null && { info }),
    ...(!isDisplayed && { display: false }),
    ...(skipsConsent && { oauth_no_confirm: true }),
    ...(clientId !== undefined && clientId !== `service-${name}` && { oauth_client_id: clientId }),
    ...(redirectUri !== undefined &&
      !(isUsualUri && redirectUri.startsWith('/')) && {
        oauth_redirect_uri: redirectUri,
      }),
    oauth_client_allowed_scopes: service.allowedScopes,
  };
}
