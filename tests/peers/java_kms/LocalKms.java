package icefloe.tests;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.util.ByteBuffers;

/** Keys by id, from the catalog's property `tests.keys`: `id=base64,...`. Wrapped keys are nonce, encrypted key and tag. */
public class LocalKms implements KeyManagementClient {
  private static final int NONCE = 12;
  private Map<String, byte[]> keys;

  @Override
  public void initialize(Map<String, String> properties) {
    keys = new HashMap<>();
    for (String pair : properties.get("tests.keys").split(",")) {
      int at = pair.indexOf('=');
      keys.put(pair.substring(0, at), Base64.getDecoder().decode(pair.substring(at + 1)));
    }
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String id) {
    byte[] nonce = new byte[NONCE];
    new SecureRandom().nextBytes(nonce);
    byte[] sealed = run(Cipher.ENCRYPT_MODE, id, nonce, ByteBuffers.toByteArray(key));
    return ByteBuffer.allocate(NONCE + sealed.length).put(nonce).put(sealed).flip();
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
    byte[] all = ByteBuffers.toByteArray(wrapped);
    byte[] nonce = Arrays.copyOf(all, NONCE);
    return ByteBuffer.wrap(run(Cipher.DECRYPT_MODE, id, nonce, Arrays.copyOfRange(all, NONCE, all.length)));
  }

  private byte[] run(int mode, String id, byte[] nonce, byte[] data) {
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, new SecretKeySpec(keys.get(id), "AES"), new GCMParameterSpec(128, nonce));
      return cipher.doFinal(data);
    } catch (GeneralSecurityException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
