/** What becomes of a setting of JupyterHub: the setting that it is here, or what to do instead, in a sentence. */
export type OldSetting = { readonly here: string } | { readonly instead: string };

const here = (setting: string): OldSetting => ({ here: setting });
const instead = (sentence: string): OldSetting => ({ instead: sentence });

const ofSite = instead('pages are changed by Hub.templates_dir and Hub.custom_css');
const ofProxy = instead('the hub is its own proxy');
const ofCertificates = instead('servers are reached over loopback, sockets or a private network');
const ofLog = instead('the log is set by Hub.log_level and Hub.log_format');
const ofHook = instead('write a hook for Spawner.hooks (docs/how-to/write-a-hook.md)');
const ofOptions = instead('offer Spawner.profiles, whose choices users see');
const ofPods = instead('give it in KubernetesSpawner.pod_patch');
const ofAccounts = instead('accounts of the machine are given by Spawner.system_user');
const ofCreation = instead(
  'Spawner.create_system_users is the command that makes accounts of Spawner.system_user',
);
const ofClaims = instead('name the volume in KubernetesSpawner.claims');

/**
 * Sections of JupyterHub, its spawners and its authenticators that have another name here. Those of a subclass hold
 * settings of `Spawner` and `Authenticator` too.
 */
export const oldSections: Readonly<Record<string, string>> = {
  JupyterHub: 'Hub',
  ConfigurableHTTPProxy: 'Proxy',
  KubeSpawner: 'KubernetesSpawner',
  SystemUserSpawner: 'DockerSpawner',
  SimpleLocalProcessSpawner: 'LocalProcessSpawner',
  SystemdSpawner: 'LocalProcessSpawner',
  BatchSpawnerBase: 'SlurmSpawner',
  OAuthenticator: 'Authenticator',
  AzureAdOAuthenticator: 'MicrosoftAuthenticator',
  Auth0OAuthenticator: 'Auth0Authenticator',
  GenericOAuthenticator: 'OAuth2Authenticator',
  GitHubOAuthenticator: 'GitHubAuthenticator',
  LocalGitHubOAuthenticator: 'GitHubAuthenticator',
  GitLabOAuthenticator: 'GitLabAuthenticator',
  GoogleOAuthenticator: 'GoogleAuthenticator',
  LocalGoogleOAuthenticator: 'GoogleAuthenticator',
  OktaOAuthenticator: 'OktaAuthenticator',
  LocalAuthenticator: 'Authenticator',
  NativeAuthenticator: 'PasswordAuthenticator',
  FirstUseAuthenticator: 'PasswordAuthenticator',
};

/**
 * Settings of JupyterHub and of what is used with it that are called otherwise here, or are not there, by their old
 * names. One that is not listed has the same name in the same section.
 */
export const oldSettings: Readonly<Record<string, OldSetting>> = {
  'JupyterHub.ip': here('Hub.bind_url'),
  'JupyterHub.port': here('Hub.bind_url'),
  'JupyterHub.base_url': here('Hub.bind_url'),
  'JupyterHub.hub_ip': here('Hub.hub_bind_url'),
  'JupyterHub.hub_port': here('Hub.hub_bind_url'),
  'JupyterHub.hub_connect_ip': here('Hub.hub_connect_url'),
  'JupyterHub.hub_connect_port': here('Hub.hub_connect_url'),
  'JupyterHub.db_url': instead(
    'Hub.database_url names a database of its own; the import of a JupyterHub reads the old one (--database)',
  ),
  'JupyterHub.ssl_cert': here('Hub.certificates'),
  'JupyterHub.ssl_key': here('Hub.certificates'),
  'JupyterHub.admin_users': here('Authenticator.admin_users'),
  'JupyterHub.spawner_class': here('Spawner.class'),
  'JupyterHub.logo_file': here('Hub.logo'),
  'JupyterHub.trusted_downstream_ips': here('Hub.trusted_proxies'),
  'JupyterHub.template_paths': ofSite,
  'JupyterHub.template_vars': instead(
    'announcements are Hub.announcement and those of single pages',
  ),
  'JupyterHub.jinja_environment_options': ofSite,
  'JupyterHub.admin_access': instead(
    'administrators may open servers by their role; define the role admin in Hub.load_roles to change that',
  ),
  'JupyterHub.api_tokens': instead(
    'tokens come along by the import of a JupyterHub (--database); of services they are Hub.services[].api_token',
  ),
  'JupyterHub.service_tokens': instead('give each service its Hub.services[].api_token'),
  'JupyterHub.cookie_secret': instead(
    'the hub makes its own in Hub.cookie_secret_file: nobody stays logged in',
  ),
  'JupyterHub.cookie_secret_file': instead(
    'the hub makes its own in Hub.cookie_secret_file: nobody stays logged in',
  ),
  'JupyterHub.internal_ssl': here('Hub.internal_ssl'),
  'JupyterHub.generate_certs': ofCertificates,
  'JupyterHub.trusted_alt_names': here('Hub.trusted_alt_names'),
  'JupyterHub.extra_handlers': instead('make a service of it, or a route of Proxy.extra_routes'),
  'JupyterHub.user_redirect_hook': instead('/hub/user-redirect leads to the default server'),
  'JupyterHub.tornado_settings': instead('Hub and Proxy have a setting for each limit and time'),
  'JupyterHub.proxy_class': ofProxy,
  'JupyterHub.proxy_cmd': ofProxy,
  'JupyterHub.proxy_auth_token': ofProxy,
  'JupyterHub.cleanup_proxy': ofProxy,
  'JupyterHub.extra_log_file': ofLog,
  'JupyterHub.extra_log_handlers': ofLog,
  'JupyterHub.logging_config': ofLog,
  'JupyterHub.statsd_host': instead('metrics are read from /hub/metrics (docs/how-to/monitor.md)'),
  'Authenticator.whitelist': here('Authenticator.allowed_users'),
  'Authenticator.blacklist': here('Authenticator.blocked_users'),
  'Authenticator.any_allow_config': here('Authenticator.allow_all'),
  'Authenticator.allow_existing_users': instead('users who are taken over may log in'),
  'Authenticator.delete_invalid_users': ofAccounts,
  'Authenticator.post_auth_hook': instead(
    'write an authenticator (docs/how-to/write-an-authenticator.md)',
  ),
  'Authenticator.open_sessions': ofAccounts,
  'LocalAuthenticator.create_system_users': ofCreation,
  'LocalAuthenticator.add_user_cmd': ofCreation,
  'LocalAuthenticator.admin_groups': here('PAMAuthenticator.admin_groups'),
  'LocalAuthenticator.allowed_groups': here('PAMAuthenticator.allowed_groups'),
  'NativeAuthenticator.open_signup': instead(
    'administrators invite users (docs/how-to/manage-users.md)',
  ),
  'NativeAuthenticator.minimum_password_length': here('PasswordAuthenticator.min_length'),
  'NativeAuthenticator.check_common_password': here('PasswordAuthenticator.refuse_common'),
  'NativeAuthenticator.allowed_failed_logins': here('Authenticator.lockout_attempts'),
  'NativeAuthenticator.seconds_before_next_try': here('Authenticator.lockout_delay'),
  'OAuthenticator.oauth_callback_url': instead(
    'it is /hub/oauth_callback below Hub.public_url, as it was',
  ),
  'OAuthenticator.validate_server_cert': instead(
    'trust an authority of your own by NODE_EXTRA_CA_CERTS',
  ),
  'OAuthenticator.auth_state_groups_key': here('OAuth2Authenticator.groups_claim'),
  'GenericOAuthenticator.username_key': here('OAuth2Authenticator.username_claim'),
  'GenericOAuthenticator.claim_groups_key': here('OAuth2Authenticator.groups_claim'),
  'GitLabOAuthenticator.gitlab_url': here('GitLabAuthenticator.issuer'),
  'GitLabOAuthenticator.allowed_gitlab_groups': here('GitLabAuthenticator.allowed_groups'),
  'GoogleOAuthenticator.strip_domain': instead(
    'GoogleAuthenticator.strip_domain names the domain that names are without',
  ),
  'GoogleOAuthenticator.allowed_google_groups': instead(
    'Google tells no groups at a login: use hosted_domain and groups of the hub',
  ),
  'AzureAdOAuthenticator.tenant_id': here('MicrosoftAuthenticator.tenant'),
  'Auth0OAuthenticator.auth0_domain': here('Auth0Authenticator.domain'),
  'Auth0OAuthenticator.auth0_subdomain': instead(
    'Auth0Authenticator.domain is <subdomain>.auth0.com',
  ),
  'LDAPAuthenticator.server_address': instead(
    'LDAPAuthenticator.url is ldap://<server_address> or ldaps://<server_address>',
  ),
  'LDAPAuthenticator.lookup_dn_search_user': here('LDAPAuthenticator.bind_dn'),
  'LDAPAuthenticator.lookup_dn_search_password': here('LDAPAuthenticator.bind_password'),
  'LDAPAuthenticator.user_attribute': here('LDAPAuthenticator.username_attribute'),
  'Spawner.notebook_dir': instead(
    'servers begin in Spawner.home_dir; say --ServerApp.root_dir in Spawner.cmd for another folder',
  ),
  'Spawner.disable_user_config': instead('say it to the program in Spawner.cmd'),
  'Spawner.debug': instead('say it to the program in Spawner.cmd'),
  'Spawner.port': instead('the hub chooses a free port, {port} in Spawner.cmd'),
  'Spawner.pre_spawn_hook': ofHook,
  'Spawner.post_stop_hook': ofHook,
  'Spawner.auth_state_hook': ofHook,
  'Spawner.progress_ready_hook': ofHook,
  'Spawner.options_form': ofOptions,
  'Spawner.options_from_form': ofOptions,
  'Spawner.apply_user_options': ofOptions,
  'Spawner.oauth_roles': here('Spawner.oauth_client_allowed_scopes'),
  'Spawner.consecutive_failure_limit': instead('a start that fails says why, and the hub goes on'),
  'Spawner.hub_connect_url': here('Hub.hub_connect_url'),
  'LocalProcessSpawner.popen_kwargs': instead(
    'limits are Spawner.mem_limit, cpu_limit and process_limit',
  ),
  'SystemdSpawner.isolate_tmp': instead(
    'limits are Spawner.mem_limit, cpu_limit and process_limit',
  ),
  'SystemdSpawner.username_template': here('Spawner.system_user'),
  'DockerSpawner.network_name': here('DockerSpawner.network'),
  'DockerSpawner.name_template': instead('names begin with DockerSpawner.name_prefix'),
  'DockerSpawner.extra_host_config': instead('give it in DockerSpawner.create_options'),
  'DockerSpawner.extra_create_kwargs': instead('give it in DockerSpawner.create_options'),
  'DockerSpawner.host_homedir_format_string': instead('name the folder in Spawner.volumes'),
  'DockerSpawner.remove_containers': here('DockerSpawner.remove'),
  'DockerSpawner.container_image': here('DockerSpawner.image'),
  'KubeSpawner.profile_list': here('Spawner.profiles'),
  'KubeSpawner.singleuser_image_spec': here('KubernetesSpawner.image'),
  'KubeSpawner.image_spec': here('KubernetesSpawner.image'),
  'KubeSpawner.image_pull_policy': here('KubernetesSpawner.pull_policy'),
  'KubeSpawner.image_pull_secrets': here('KubernetesSpawner.pull_secrets'),
  'KubeSpawner.priority_class_name': here('KubernetesSpawner.priority_class'),
  'KubeSpawner.uid': here('KubernetesSpawner.run_as_user'),
  'KubeSpawner.gid': here('KubernetesSpawner.run_as_group'),
  'KubeSpawner.fs_gid': here('KubernetesSpawner.fs_group'),
  'KubeSpawner.extra_labels': here('KubernetesSpawner.labels'),
  'KubeSpawner.extra_annotations': here('KubernetesSpawner.annotations'),
  'KubeSpawner.delete_pvc': here('KubernetesSpawner.delete_claims'),
  'KubeSpawner.storage_pvc_ensure': ofClaims,
  'KubeSpawner.storage_capacity': ofClaims,
  'KubeSpawner.storage_class': ofClaims,
  'KubeSpawner.storage_access_modes': ofClaims,
  'KubeSpawner.pvc_name_template': ofClaims,
  'KubeSpawner.volumes': ofClaims,
  'KubeSpawner.volume_mounts': ofClaims,
  'KubeSpawner.pod_name_template': instead('names begin with KubernetesSpawner.name_prefix'),
  'KubeSpawner.init_containers': ofPods,
  'KubeSpawner.extra_containers': ofPods,
  'KubeSpawner.extra_pod_config': ofPods,
  'KubeSpawner.extra_container_config': ofPods,
  'KubeSpawner.lifecycle_hooks': ofPods,
  'KubeSpawner.node_affinity_preferred': ofPods,
  'KubeSpawner.node_affinity_required': ofPods,
  'KubeSpawner.extra_resource_limits': here('Spawner.gpu_limit'),
  'KubeSpawner.modify_pod_hook': ofPods,
  'SlurmSpawner.req_partition': here('SlurmSpawner.partition'),
  'SlurmSpawner.req_account': here('SlurmSpawner.account'),
  'SlurmSpawner.req_qos': here('SlurmSpawner.qos'),
  'SlurmSpawner.req_gres': here('SlurmSpawner.gres'),
  'SlurmSpawner.req_prologue': here('SlurmSpawner.prologue'),
  'SlurmSpawner.batch_script': instead('the job is described by SlurmSpawner'),
  'PAMAuthenticator.open_sessions': ofAccounts,
  'PAMAuthenticator.encoding': instead('names and passwords are UTF-8'),
  'PAMAuthenticator.pam_normalize_username': instead('PAM must know users by the names they type'),
  'CryptKeeper.keys': instead('what is stored is sealed with the keys of Hub.cookie_secret_file'),
};
