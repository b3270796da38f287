import type { Environment } from '../client/client-options.ts';
import type { AppAddress } from './app-address.ts';

/** Fills `{port}`, `{socket}` and `{prefix}` in the arguments of the app's command. */
export function fillCommand(
  command: readonly string[],
  address: Pick<AppAddress, 'port' | 'socketPath'>,
  prefix: string,
): string[] {
  const values: Record<string, string | undefined> = {
    port: address.port?.toString(),
    socket: address.socketPath,
    prefix,
  };
  return command.map((argument) =>
    argument.replaceAll(/\{(port|socket|prefix)\}/g, (placeholder, name: string) => {
      const value = values[name];
      if (value === undefined) {
        throw new TypeError(`${placeholder} stands in the command, but the app has none`);
      }
      return value;
    }),
  );
}

/**
 * The environment of the app: this program's own, with the address of the app in place of the own one.
 * The API token is left out under every name it has, unless it is to be passed.
 */
export function appEnvironment(
  environment: Environment,
  address: Pick<AppAddress, 'port' | 'url'>,
  passToken: boolean,
): Record<string, string> {
  const token = environment['HUB_API_TOKEN'];
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined) continue;
    if (!passToken && token !== undefined && token !== '' && value.includes(token)) continue;
    variables[name] = name.endsWith('HUB_SERVICE_URL') ? address.url : value;
  }
  if (address.port !== undefined) variables['PORT'] = String(address.port);
  return variables;
}
