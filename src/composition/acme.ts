import type { Logger } from 'pino';
import { startAcmeCertificates } from '../platform/acme/acme-certificates.ts';
import { createAcmeStore } from '../platform/acme/acme-store.ts';
import { createResponder, findersOf, openChallenges } from '../platform/acme/challenges.ts';
import { acmeNames } from '../platform/config/acme-names.ts';
import type { Config } from '../platform/config/config.ts';
import type { Secret } from '../platform/config/secret.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import {
  type CertificateSources,
  createHeldCertificates,
} from '../platform/http/tls/certificate-source.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import type { KeyvSpaces } from '../platform/store/keyv.ts';
import type { Stores } from './stores.ts';

/** Serves certificates of `Hub.acme`, and gets those that are due. */
export function openAcme(
  hub: Pick<Stores, 'settings'> & {
    readonly config: Config;
    /** Undefined where `Hub.bind_url` is no https:// address. */
    readonly certificates?: CertificateSources;
    /** Of the hub, which its command for DNS records has. */
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly secrets: readonly Secret[];
    readonly database: HubDatabase;
    readonly isShared: boolean;
    readonly keyv: KeyvSpaces;
    readonly log: Logger;
    readonly disposables: AsyncDisposableStack;
    readonly stopping: AbortSignal;
  },
) {
  const { config, certificates, keyv, settings, database, log } = hub;
  const { acme } = config.Hub;
  if (acme === undefined || certificates === undefined) return { acme: undefined };
  let names = acmeNames(config);
  const challenges = openChallenges(keyv);
  const held = createHeldCertificates();
  certificates.add({ ...held, ...findersOf(acme.challenge, challenges) });
  hub.disposables.use(
    startAcmeCertificates({
      acme,
      names: () => names,
      isShared: hub.isShared,
      store: createAcmeStore(settings, createSealer(hub.secrets, 'acme')),
      responder: createResponder(acme, challenges, hub.environment),
      claims: keyv.space<string>('acme-orders'),
      now: database.now,
      onCertificate: ({ certificate, key, names, notAfter }) =>
        held.hold([{ certificate, key, names, notAfter: new Date(notAfter), origin: 'Hub.acme' }]),
      onRenewed: ({ names, notAfter }) =>
        database.audit.recordAlone({
          action: 'certificate.renew',
          target: { kind: 'hub', name: names.join(' ') },
          detail: { until: new Date(notAfter).toISOString() },
        }),
      log,
      stopping: hub.stopping,
    }),
  );
  return {
    acme: {
      /** Takes the names of a new configuration. */
      configure(next: Config) {
        names = acmeNames(next);
      },
    },
  };
}
