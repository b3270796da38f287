/** Where an app wanted its user to go after a logout, until the provider of the login has ended that too. */
export const logoutTargetCookie = 'hub-logout-target';

/** The cookie that records that a browser is logged in at the hub. */
export const loginCookie = 'hub-hub-login';

/** The browser's session id, which services use as a cache key. It is not a credential. */
export const sessionIdCookie = 'hub-session-id';

/** The same session id, under the name that software written for JupyterHub reads. */
export const jupyterHubSessionIdCookie = 'jupyterhub-session-id';

/** That a visitor wants to open another user's server. */
export const serverGuardCookie = 'hub-open-server';

/** A login under way at an external provider; each has a suffix to this name. */
export const externalLoginCookie = 'hub-oauth-state';

/** A login between two steps, such as password and code. */
export const loginStepCookie = 'hub-login-step';

/** That a page has just sent a browser to log in that is logged in. */
export const loginLoopCookie = 'hub-login-loop';

/** Who has logged in with this browser before. */
export const knownBrowserCookie = 'hub-known-browser';

/** On another host than the hub's: a browser on its way to the hub and back; each has a suffix to this name. */
export const handOffCookie = 'hub-hand-off';

/** On another host than the hub's: the login of a browser that was let in. */
export const handedOffCookie = 'hub-handed-off';

/** How a browser wants the pages to be. */
export const preferencesCookie = 'hub-preferences';

/** What was typed into a form whose login had ended, until the form is shown again. */
export const savedInputCookie = 'hub-saved-input';

/** What a form is bound to before login. */
export const formCookie = 'hub-form';

/**
 * The cookie in which an OAuth client of the hub keeps its visitor's token: the client id, what a name
 * cannot hold percent-encoded (RFC 6265 §4.1).
 */
export function tokenCookieName(clientId: string): string {
  return clientId.replaceAll(/[^!#$%&'*+\-.^_`|~0-9A-Za-z]/gu, (character) =>
    character === '(' ? '%28' : character === ')' ? '%29' : encodeURIComponent(character),
  );
}

/**
 * Browsers keep a cookie of a name that begins so only from an https answer of the very host, without
 * Domain and for the whole of it (RFC 6265bis §4.1.3.2): no page of a neighbour can plant it.
 */
export const hostPrefix = '__Host-';

/** The cookie of an OAuth client's login under way; logins beside it have a suffix to this name. */
export function stateCookieName(tokenCookie: string): string {
  return `${tokenCookie}-oauth-state`;
}
