import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type {
  AuthenticatorPlugin,
  FormAuthenticator,
  OptionProblem,
  PluginSurroundings,
} from '../src/plugin/plugin.ts';
import { nameAndPassword } from './external/name-and-password.ts';

const optionsSchema = z.strictObject({
  password: z
    .string()
    .min(1)
    .optional()
    .describe('The single password of all users; without it, any password is accepted.'),
  allow_non_loopback: z
    .boolean()
    .default(false)
    .describe('Allow this on a hub that other machines can reach. Only for closed networks.'),
});

const [nameField, passwordField] = nameAndPassword;

type Options = z.output<typeof optionsSchema>;

const plugin: AuthenticatorPlugin<Options, FormAuthenticator> = {
  kind: 'authenticator',
  name: 'dummy',
  section: 'DummyAuthenticator',
  optionsSchema,
  secretOptions: ['password'],
  findProblems,

  create(options, host) {
    const [problem] = findProblems(options, host);
    if (problem !== undefined) throw new Error(`${problem.option}: ${problem.message}`);
    host.log.warn(
      { authenticator: host.name },
      'dummy authenticator lets people in under any name they give: for trying out and tests only',
    );
    return {
      login: {
        kind: 'form',
        label: 'Any name (for trying out)',
        fields: [nameField, { ...passwordField, optional: options.password === undefined }],
      },

      authenticate(form) {
        const name = form.get('username') ?? '';
        const isRight =
          options.password === undefined || areEqual(form.get('password') ?? '', options.password);
        if (name === '' || !isRight) {
          return Promise.resolve({ outcome: 'refused', reason: 'credentials' });
        }
        return Promise.resolve({ outcome: 'authenticated', user: { name } });
      },
    };
  },
};

export default plugin;

function findProblems(options: Options, { isLoopbackOnly }: PluginSurroundings): OptionProblem[] {
  if (isLoopbackOnly || options.allow_non_loopback) return [];
  const message =
    'must be true before this authenticator serves other machines: it lets anybody in as anybody';
  return [{ option: 'allow_non_loopback', message }];
}

/** Compares in a time that does not tell how much of the password was right. */
function areEqual(left: string, right: string): boolean {
  const [leftHash, rightHash] = [left, right].map((text) =>
    createHash('sha256').update(text).digest(),
  );
  return leftHash !== undefined && rightHash !== undefined && timingSafeEqual(leftHash, rightHash);
}
