import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import type {
  AuthenticationResult,
  AuthenticatorPlugin,
  RequestAuthenticator,
} from '../src/plugin/plugin.ts';
import { judgeGroups } from './external/group-rules.ts';
import { labelOption } from './external/label-option.ts';

const optionsSchema = z.strictObject({
  user_field: z
    .enum(['CN', 'UID', 'emailAddress', 'san_email', 'san_dns'])
    .default('CN')
    .describe(
      'Field of the certificate with the user name: part of its subject, or its e-mail address or DNS name (subjectAltName). Certificates with several are rejected.',
    ),
  groups_field: z
    .enum(['OU', 'O'])
    .optional()
    .describe("Field of the certificate's subject with group names; may occur several times."),
  allowed_groups: z.array(z.string().min(1)).default([]).describe('Groups that may log in.'),
  admin_groups: z.array(z.string().min(1)).default([]).describe('Groups of administrators.'),
  label: labelOption
    .default('Certificate')
    .describe('Name of this login method, or an object with one per language.'),
});
type Options = z.output<typeof optionsSchema>;

/** Logs in the owner of a certificate that the browser shows in the handshake (RFC 8446 §4.4.2). */
const plugin: AuthenticatorPlugin<Options, RequestAuthenticator> = {
  kind: 'authenticator',
  name: 'certificate',
  section: 'CertificateAuthenticator',
  optionsSchema,

  findProblems({ groups_field, allowed_groups, admin_groups }, { asksForCertificates }) {
    const needing = Object.entries({ allowed_groups, admin_groups }).filter(
      ([, groups]) => groups.length > 0 && groups_field === undefined,
    );
    const problems = needing.map(([option]) => ({ option, message: 'needs groups_field' }));
    const message =
      'cannot be found anywhere: browsers are asked for certificates with Hub.client_authorities at an https:// Hub.bind_url';
    return asksForCertificates ? problems : [{ option: 'user_field', message }, ...problems];
  },

  create({ user_field, groups_field, label, ...rules }, { log }) {
    return {
      login: { kind: 'request', label },

      async identify({ clientCertificate, address }) {
        if (clientCertificate === undefined) return noCredentials;
        const certificate = new X509Certificate(Buffer.from(clientCertificate, 'base64'));
        const names = valuesOf(certificate, user_field);
        const [name] = names;
        if (name === undefined || names.length > 1) {
          log.warn(
            { address, serialNumber: certificate.serialNumber, field: user_field },
            `certificate has ${names.length} values in the field of the user name`,
          );
          return {
            outcome: 'refused',
            reason: 'invalid_response',
            message: 'Your certificate does not say who you are.',
          };
        }
        const groups = groups_field && valuesOf(certificate, groups_field);
        return {
          outcome: 'authenticated',
          user: {
            name,
            ...(groups !== undefined && { groups }),
            ...judgeGroups(rules, (group) => groups?.includes(group) === true),
          },
        };
      },
    };
  },
};

export default plugin;

const noCredentials: AuthenticationResult = { outcome: 'refused', reason: 'credentials' };

const kinds: Readonly<Record<string, string>> = { san_email: 'email:', san_dns: 'DNS:' };

/** The values of a field as they stand in the certificate, each once. */
function valuesOf(certificate: X509Certificate, field: string): string[] {
  const kind = kinds[field];
  if (kind === undefined) {
    const { subject } = certificate.toLegacyObject();
    return [(subject as unknown as Record<string, string | string[]>)[field] ?? []].flat();
  }
  const { subjectAltName = '' } = certificate;
  // Node puts a value that could be taken for several into quotes; no name has any use for one.
  if (subjectAltName.includes('"')) return [];
  return subjectAltName
    .split(', ')
    .flatMap((entry) => (entry.startsWith(kind) ? entry.slice(kind.length) : []));
}
