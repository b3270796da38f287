import { ConfigError } from '../platform/errors.ts';
import {
  openCertificateFiles,
  readClientAuthorities,
} from '../platform/http/tls/certificate-files.ts';
import { createCertificateSources } from '../platform/http/tls/certificate-source.ts';
import type { Foundation } from './foundation.ts';

/** The certificates for an https:// `Hub.bind_url`; with any other address there are none. */
export async function openCertificates({
  config,
  log,
  disposables,
}: Pick<Foundation, 'config' | 'log' | 'disposables'>) {
  if (new URL(config.Hub.bind_url).protocol !== 'https:') return {};
  const authorities = await readClientAuthorities(config);
  if (typeof authorities === 'object') throw new ConfigError([authorities]);
  const certificates = createCertificateSources(authorities);
  const certificateFiles = disposables.use(await openCertificateFiles({ config, log }));
  certificates.add(certificateFiles);
  return { certificates, certificateFiles };
}
