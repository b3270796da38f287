import { ConfigError } from '../platform/errors.ts';
import {
  openCertificateFiles,
  readClientAuthorities,
} from '../platform/http/tls/certificate-files.ts';
import {
  createCertificateSources,
  createHeldCertificates,
} from '../platform/http/tls/certificate-source.ts';
import type { Foundation } from './foundation.ts';

/** The certificates for https:// addresses of the hub; those of the internal one come with the database. */
export async function openCertificates({
  config,
  log,
  disposables,
}: Pick<Foundation, 'config' | 'log' | 'disposables'>) {
  const internal = config.Hub.internal_ssl && {
    internalCertificates: createHeldCertificates({ requiresClient: true }),
  };
  if (new URL(config.Hub.bind_url).protocol !== 'https:') return { ...internal };
  const authorities = await readClientAuthorities(config);
  if (typeof authorities === 'object') throw new ConfigError([authorities]);
  const certificates = createCertificateSources(authorities);
  const certificateFiles = disposables.use(await openCertificateFiles({ config, log }));
  certificates.add(certificateFiles);
  return { certificates, certificateFiles, ...internal };
}
