import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config, ServiceConfig } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { findSystemUser, maySwitchAccounts } from '../../spawning/processes/system-user.ts';
import { type ServiceFacts, validateServices } from './validate-services.ts';

/** Checks the services of a configuration against this machine; starts nothing. */
export async function checkServices(config: Config): Promise<readonly ConfigProblem[]> {
  const { Hub, directory } = config;
  const { services } = Hub;
  const facts = await gatherServiceFacts(services, directory);
  return validateServices({ services, directory, hubUrls: hubUrlsOf(config) }, facts);
}

/** Where the hub itself is reached. */
export function hubUrlsOf({ Hub, publicUrl, connectUrl }: Config): readonly string[] {
  return [...new Set([Hub.bind_url, Hub.hub_bind_url, publicUrl.href, connectUrl.href])];
}

/** Asks this machine about the accounts and folders that services name. */
export async function gatherServiceFacts(
  services: readonly Pick<ServiceConfig, 'user' | 'cwd'>[],
  directory: string,
): Promise<ServiceFacts> {
  const users = new Set<string>();
  const directories = new Set<string>();
  await Promise.all(
    services.map(async ({ user, cwd }) => {
      if (user !== undefined && (await findSystemUser(user)) !== undefined) users.add(user);
      if (cwd === undefined) return;
      const path = resolve(directory, cwd);
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory()) directories.add(path);
    }),
  );
  return {
    maySwitchAccounts: maySwitchAccounts(),
    userExists: (name) => users.has(name),
    isDirectory: (path) => directories.has(path),
  };
}
