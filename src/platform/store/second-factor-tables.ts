export interface SecondFactorsTable {
  user_id: string;
  totp_secret_encrypted: string;
  confirmed_at: number | null;
  /** The last accepted time step, so that a code works once. */
  last_step: number | null;
}

/** A row goes when its code is used. */
export interface RecoveryCodesTable {
  user_id: string;
  code_hash: string;
}

/** See `Passkey`; `transports` is a JSON list. */
export interface PasskeysTable {
  id: string;
  user_id: string;
  name: string;
  public_key: string;
  sign_count: number;
  transports: string;
  verifies_user: number;
  created_at: number;
  last_used_at: number | null;
}
