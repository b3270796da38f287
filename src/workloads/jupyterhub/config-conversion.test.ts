import { expect, test } from 'vitest';
import { convertConfig, type KnownSettings } from './config-conversion.ts';

const known: KnownSettings = Object.fromEntries(
  Object.entries({
    Hub: ['services', 'title', 'subdomain_host'],
    Authenticator: ['admin_users', 'allow_all', 'enable_auth_state'],
    Spawner: ['cmd', 'mem_limit', 'default_url'],
    GitHubAuthenticator: ['client_id', 'client_secret', 'allowed_organizations', 'allowed_teams'],
    KubernetesSpawner: ['image', 'namespace', 'node_selector'],
  }).map(([section, keys]) => [section, new Set(keys)]),
);

test('puts what the settings of spawners and authenticators say where it stands here', () => {
  const { config, changed, left } = convertConfig(
    {
      JupyterHub: {
        authenticator_class: 'github',
        spawner_class: { __python__: 'kubespawner.spawner.KubeSpawner' },
        subdomain_host: 'https://hub.example.org',
      },
      OAuthenticator: { client_id: 'id', oauth_callback_url: 'https://x/hub/oauth_callback' },
      GitHubOAuthenticator: {
        client_secret: 'secret',
        enable_auth_state: true,
        allowed_organizations: ['jupyter', 'org:team'],
      },
      GoogleOAuthenticator: { hosted_domain: ['example.org'] },
      Spawner: { image: 'lab:1', frobnicate: 1 },
      KubeSpawner: {
        namespace: 'users',
        mem_limit: '2G',
        uid: 1000,
        storage_capacity: '5Gi',
        modify_pod_hook: { __python__: '__main__.change' },
        profile_list: [
          {
            display_name: 'With a GPU',
            default: true,
            kubespawner_override: { image: 'gpu:1', mem_limit: '8G', extra_resource_limits: {} },
          },
        ],
      },
    },
    known,
  );
  expect(config).toEqual({
    Hub: {
      environment_prefixes: ['HUB', 'JUPYTERHUB'],
      redirect_to_server: true,
      authenticator_class: 'github',
      subdomain_host: 'https://hub.example.org',
    },
    Authenticator: { enable_auth_state: true },
    GitHubAuthenticator: {
      client_id: 'id',
      client_secret: 'secret',
      allowed_organizations: ['jupyter'],
      allowed_teams: ['org:team'],
    },
    GoogleAuthenticator: { hosted_domain: ['example.org'], strip_domain: 'example.org' },
    Spawner: {
      class: 'kubernetes',
      mem_limit: '2G',
      profiles: [
        {
          name: 'with-a-gpu',
          display_name: 'With a GPU',
          default: true,
          mem_limit: '8G',
          options: { image: 'gpu:1' },
        },
      ],
    },
    KubernetesSpawner: { image: 'lab:1', namespace: 'users', run_as_user: 1000 },
  });
  expect(changed.map(({ what }) => what)).toEqual(['KubeSpawner.profile_list']);
  expect(left).toEqual([
    {
      what: 'OAuthenticator.oauth_callback_url',
      why: 'there is no such setting here',
      todo: 'it is /hub/oauth_callback below Hub.public_url, as it was',
    },
    { what: 'Spawner.frobnicate', why: 'there is no such setting here' },
    {
      what: 'KubeSpawner.storage_capacity',
      why: 'there is no such setting here',
      todo: 'name the volume in KubernetesSpawner.claims',
    },
    {
      what: 'KubeSpawner.modify_pod_hook',
      why: 'it is Python (__main__.change)',
      todo: 'give it in KubernetesSpawner.pod_patch',
    },
  ]);
});
